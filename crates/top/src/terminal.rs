//! The real terminal: raw mode, keys, and signals that end the program.

use std::io::{self, BufWriter, Read, Stdout, Write, stdout};
use std::os::unix::net::UnixStream;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, MoveTo, Show};
use ratatui::crossterm::event::{self, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::run::Event;
use crate::view::Key;

/// Large enough to write a frame at once, so that a terminal never shows half of one.
const FRAME_BYTES: usize = 64 << 10;

/// The back end of [`Screen`].
pub type Backend = CrosstermBackend<BufWriter<Stdout>>;

/// The alternate screen in raw mode. Drop, or a panic in any thread, restores the terminal.
pub struct Screen {
    /// To draw on.
    pub terminal: Terminal<Backend>,
}

static IS_OPEN: AtomicBool = AtomicBool::new(false);

impl Screen {
    /// Enters the alternate screen.
    ///
    /// # Errors
    /// Standard output is no terminal, or a write to it fails.
    pub fn open() -> io::Result<Self> {
        restore_on_panic();
        IS_OPEN.store(true, Ordering::SeqCst);
        Self::enter().inspect_err(|_| restore())
    }

    fn enter() -> io::Result<Self> {
        enable_raw_mode()?;
        // The Linux console has no alternate screen: clear it on entry and on exit.
        execute!(stdout(), EnterAlternateScreen, Clear(ClearType::All), Hide)?;
        let out = BufWriter::with_capacity(FRAME_BYTES, stdout());
        Ok(Self { terminal: Terminal::new(CrosstermBackend::new(out))? })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the terminal once. Ignores errors: the terminal may be gone.
fn restore() {
    if IS_OPEN.swap(false, Ordering::SeqCst) {
        let _ = disable_raw_mode();
        let _ = execute!(stdout(), Clear(ClearType::All), MoveTo(0, 0), LeaveAlternateScreen, Show);
        let _ = stdout().flush();
    }
}

/// A hook, since a release build aborts on a panic without dropping anything.
fn restore_on_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            restore();
            before(info);
        }));
    });
}

/// Sends keys, new sizes and ends (SIGINT, SIGTERM, SIGHUP) to `to`, from two threads that stay until the program ends.
///
/// # Errors
/// The error of pipe(2), sigaction(2) or of starting a thread.
pub fn listen(to: &Sender<Event>) -> io::Result<()> {
    let (mut readable, written) = UnixStream::pair()?;
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::low_level::pipe::register(signal, written.try_clone()?)?;
    }
    let signals = to.clone();
    thread::Builder::new().name("signals".into()).spawn(move || {
        // The other end stays open in the handler: this returns only with a signal.
        let _ = readable.read(&mut [0]);
        let _ = signals.send(Event::Stop);
    })?;
    let keys = to.clone();
    thread::Builder::new().name("keys".into()).spawn(move || send_keys(&keys))?;
    Ok(())
}

fn send_keys(to: &Sender<Event>) {
    loop {
        let Ok(event) = event::read() else {
            // Without keys there is no other way to end.
            let _ = to.send(Event::Stop);
            return;
        };
        if meaning(&event).is_some_and(|event| to.send(event).is_err()) {
            return;
        }
    }
}

fn meaning(event: &event::Event) -> Option<Event> {
    match event {
        event::Event::Key(key) if key.kind != KeyEventKind::Release => key_of(key).map(Event::Key),
        event::Event::Resize(..) => Some(Event::Resized),
        _ => None,
    }
}

fn key_of(key: &KeyEvent) -> Option<Key> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    Some(match key.code {
        KeyCode::Char('c') if control => Key::Quit,
        KeyCode::Char(_) if control => return None,
        KeyCode::Char('q' | 'Q') | KeyCode::Esc => Key::Quit,
        KeyCode::Char('p' | 'P' | ' ') => Key::Pause,
        KeyCode::Char('?' | 'h' | 'H') | KeyCode::F(1) => Key::Help,
        KeyCode::Down | KeyCode::Char('j') => Key::Down,
        KeyCode::Up | KeyCode::Char('k') => Key::Up,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_on_the_screen_work() {
        let key = |code, modifiers| key_of(&KeyEvent::new(code, modifiers));
        let plain = |c| key(KeyCode::Char(c), KeyModifiers::NONE);
        assert_eq!(
            ['q', 'p', '?', 'x'].map(plain),
            [Some(Key::Quit), Some(Key::Pause), Some(Key::Help), None]
        );
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Key::Quit));
        assert_eq!(key(KeyCode::Char('p'), KeyModifiers::CONTROL), None);
        assert_eq!(key(KeyCode::Down, KeyModifiers::NONE), Some(Key::Down));
    }
}
