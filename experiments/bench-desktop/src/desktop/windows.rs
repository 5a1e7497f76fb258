//! Control of windows as a pager and a person do it: EWMH messages, and keys by XTEST.

use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::fd::{AsFd, BorrowedFd};
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::damage::{ConnectionExt as _, ReportLevel};
use x11rb::protocol::xproto::{
    AtomEnum, ChangeWindowAttributesAux, ClientMessageEvent, ConnectionExt as _, EventMask,
    GetKeyboardMappingReply, KEY_PRESS_EVENT, KEY_RELEASE_EVENT, Rectangle,
};
use x11rb::protocol::xtest::ConnectionExt as _;
use x11rb::rust_connection::{DefaultStream, RustConnection};

use super::cookie::{self, Cookie};
use super::stop::{Stop, failed};
use super::viewer::Key;

x11rb::atom_manager! {
    /// EWMH 1.5.
    Atoms: AtomsCookie {
        _NET_SUPPORTING_WM_CHECK,
        _NET_CLIENT_LIST,
        _NET_CLIENT_LIST_STACKING,
        _NET_ACTIVE_WINDOW,
        _NET_WM_STATE,
        _NET_WM_STATE_MAXIMIZED_VERT,
        _NET_WM_STATE_MAXIMIZED_HORZ,
    }
}

/// EWMH: the message comes from a pager.
const PAGER: u32 = 2;
/// EWMH: add to the state.
const ADD: u32 = 1;
const SHIFT: u32 = 0xffe1;
/// The server has one screen.
const SCREEN: usize = 0;

/// A connection to the display.
pub(super) struct Windows {
    /// The connection, for reading what windows show.
    pub connection: RustConnection,
    root: u32,
    atoms: Atoms,
    keys: GetKeyboardMappingReply,
}

impl Windows {
    /// Connects to the server that listens at `socket` and has this key.
    ///
    /// # Errors
    /// The server refuses, or lacks the DAMAGE or XTEST extension.
    pub fn connect(socket: &Path, key: Cookie) -> Result<Self, Stop> {
        let stream = UnixStream::connect(socket).and_then(DefaultStream::from_unix_stream);
        let (stream, _) = stream.map_err(|e| Stop::Display(e.to_string()))?;
        let (protocol, key) = (cookie::PROTOCOL.to_vec(), key.bytes());
        let connected = RustConnection::connect_to_stream_with_auth_info(stream, SCREEN, protocol, key);
        let connection = connected.map_err(|e| Stop::Display(e.to_string()))?;
        let setup = connection.setup();
        let (root, least, most) = (setup.roots[SCREEN].root, setup.min_keycode, setup.max_keycode);
        let keys = connection.get_keyboard_mapping(least, most - least + 1)?.reply()?;
        let atoms = Atoms::new(&connection)?.reply()?;
        // Both extensions need a version query before they do anything.
        connection.damage_query_version(1, 1)?.reply()?;
        connection.xtest_get_version(2, 2)?.reply()?;
        let of_root = ChangeWindowAttributesAux::new().event_mask(EventMask::PROPERTY_CHANGE);
        connection.change_window_attributes(root, &of_root)?.check()?;
        Ok(Self { connection, root, atoms, keys })
    }

    /// The descriptor to poll for more events after [`Self::damage`] returned none.
    pub fn ready(&self) -> Result<BorrowedFd<'_>, Stop> {
        self.connection.flush()?;
        Ok(self.connection.stream().as_fd())
    }

    /// The areas of `window` damaged since the last call, in the window's coordinates. Other events only wake the driver up.
    pub fn damage(&self, window: u32) -> Result<Vec<Rectangle>, Stop> {
        let mut damage = Vec::new();
        while let Some(event) = self.connection.poll_for_event()? {
            match event {
                Event::DamageNotify(e) if e.drawable == window => damage.push(e.area),
                _ => {}
            }
        }
        Ok(damage)
    }

    /// Reports damage to this window from now on.
    pub fn watch(&self, window: u32) -> Result<(), Stop> {
        let id = self.connection.generate_id()?;
        self.connection.damage_create(id, window, ReportLevel::RAW_RECTANGLES)?.check()?;
        Ok(())
    }

    /// Whether a window manager runs.
    pub fn managed(&self) -> Result<bool, Stop> {
        Ok(!self.list(self.root, self.atoms._NET_SUPPORTING_WM_CHECK)?.is_empty())
    }

    /// The windows of programs, oldest first.
    pub fn clients(&self) -> Result<Vec<u32>, Stop> {
        self.list(self.root, self.atoms._NET_CLIENT_LIST)
    }

    /// Whether the window is above all others and has the keyboard focus.
    pub fn at_the_front(&self, window: u32) -> Result<bool, Stop> {
        let top = self.list(self.root, self.atoms._NET_CLIENT_LIST_STACKING)?;
        let active = self.list(self.root, self.atoms._NET_ACTIVE_WINDOW)?;
        Ok(top.last() == Some(&window) && active.first() == Some(&window))
    }

    /// Requests to bring the window to the front, as a pager does.
    pub fn activate(&self, window: u32) -> Result<(), Stop> {
        self.request(window, self.atoms._NET_ACTIVE_WINDOW, [PAGER, x11rb::CURRENT_TIME, 0, 0, 0])
    }

    /// Requests to maximise the window.
    pub fn maximise(&self, window: u32) -> Result<(), Stop> {
        let Atoms {
            _NET_WM_STATE_MAXIMIZED_VERT: vertical, _NET_WM_STATE_MAXIMIZED_HORZ: horizontal, ..
        } = self.atoms;
        self.request(window, self.atoms._NET_WM_STATE, [ADD, vertical, horizontal, PAGER, 0])
    }

    /// Whether the window is maximised.
    pub fn maximised(&self, window: u32) -> Result<bool, Stop> {
        let state = self.list(window, self.atoms._NET_WM_STATE)?;
        let has = |atom| state.contains(&atom);
        Ok(has(self.atoms._NET_WM_STATE_MAXIMIZED_VERT) && has(self.atoms._NET_WM_STATE_MAXIMIZED_HORZ))
    }

    /// The window's width and height in pixels.
    pub fn size(&self, window: u32) -> Result<(u16, u16), Stop> {
        let geometry = self.connection.get_geometry(window)?.reply()?;
        Ok((geometry.width, geometry.height))
    }

    /// Presses and releases a key.
    ///
    /// # Errors
    /// The keyboard has no such key.
    pub fn press(&self, key: Key) -> Result<(), Stop> {
        let code = self.keycode(key)?;
        let shift = self.keycode(Key { keysym: SHIFT, shift: false })?;
        if key.shift {
            self.fake(KEY_PRESS_EVENT, shift)?;
        }
        self.fake(KEY_PRESS_EVENT, code)?;
        self.fake(KEY_RELEASE_EVENT, code)?;
        if key.shift {
            self.fake(KEY_RELEASE_EVENT, shift)?;
        }
        Ok(self.connection.flush()?)
    }

    /// Moves the pointer into a corner: a window may change where the pointer hovers over it.
    pub fn park_pointer(&self) -> Result<(), Stop> {
        let (width, height) = self.size(self.root)?;
        let corner = |n: u16| i16::try_from(n.saturating_sub(1)).unwrap_or(i16::MAX);
        self.connection.warp_pointer(0_u32, self.root, 0, 0, 0, 0, corner(width), corner(height))?.check()?;
        Ok(())
    }

    fn list(&self, window: u32, atom: u32) -> Result<Vec<u32>, Stop> {
        let reply = self.connection.get_property(false, window, atom, AtomEnum::ANY, 0, 1024)?.reply()?;
        Ok(reply.value32().map(Iterator::collect).unwrap_or_default())
    }

    fn request(&self, window: u32, kind: u32, data: [u32; 5]) -> Result<(), Stop> {
        let message = ClientMessageEvent::new(32, window, kind, data);
        let mask = EventMask::SUBSTRUCTURE_REDIRECT | EventMask::SUBSTRUCTURE_NOTIFY;
        self.connection.send_event(false, self.root, mask, message)?;
        Ok(self.connection.flush()?)
    }

    fn fake(&self, kind: u8, keycode: u8) -> Result<(), Stop> {
        self.connection.xtest_fake_input(kind, keycode, x11rb::CURRENT_TIME, x11rb::NONE, 0, 0, 0)?;
        Ok(())
    }

    /// The key's code. A key's first symbol is without shift, the second with it.
    fn keycode(&self, key: Key) -> Result<u8, Stop> {
        let each = usize::from(self.keys.keysyms_per_keycode).max(1);
        let index = self.keys.keysyms.chunks(each).position(|symbols| {
            symbols.get(usize::from(key.shift)).is_some_and(|symbol| *symbol == key.keysym)
        });
        let index = index.and_then(|n| u8::try_from(n).ok());
        let code = index.and_then(|n| n.checked_add(self.connection.setup().min_keycode));
        code.ok_or_else(|| failed(format!("the X server's keyboard has no key for symbol {:#x}", key.keysym)))
    }
}
