//! Access control by the request's headers.
//!
//! On a loopback address all users of this machine have access. A page of another site can also make a browser send requests, under a name
//! that it lets resolve to 127.0.0.1 (DNS rebinding). Such a request has that name in `Host`: only requests for this machine's names are
//! answered. On any other address a token is required, which such a page does not have.

use std::net::{IpAddr, SocketAddr};

use eke_linux::token::Token;

/// The rule of one server.
#[derive(Debug, Clone)]
pub enum Guard {
    /// `Host` must be a loopback name of this machine.
    Loopback,
    /// The token is required: once in the address, from then on in a cookie.
    Token {
        /// The token.
        token: Token,
        /// The cookie's name, which has the port: browsers share cookies among ports.
        cookie: String,
    },
}

/// The decision on a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is answered.
    Welcome,
    /// Its address had the token: it is redirected to the page without it, with this cookie.
    Admit(String),
    /// Its `Host` is not a name of this machine.
    Stranger,
    /// It lacks the token.
    Locked,
}

impl Guard {
    /// The rule for an address: `token` is required if other machines can reach it.
    pub fn for_address(address: SocketAddr, token: Token) -> Self {
        if address.ip().is_loopback() {
            return Self::Loopback;
        }
        Self::Token { token, cookie: format!("eke-dash-{}", address.port()) }
    }

    /// The decision by the request's `host`, `query` and `cookies`.
    pub fn judge(&self, host: Option<&str>, query: Option<&str>, cookies: Option<&str>) -> Verdict {
        match self {
            Self::Loopback if host.is_some_and(is_this_machine) => Verdict::Welcome,
            Self::Loopback => Verdict::Stranger,
            Self::Token { token, cookie } => {
                let in_query = query.and_then(|q| value(q, '&', "token")).is_some_and(|t| token.is(t));
                if in_query {
                    return Verdict::Admit(format!(
                        "{cookie}={}; HttpOnly; SameSite=Lax; Path=/",
                        token.text()
                    ));
                }
                let is_known = cookies.and_then(|c| value(c, ';', cookie)).is_some_and(|t| token.is(t));
                if is_known { Verdict::Welcome } else { Verdict::Locked }
            }
        }
    }
}

/// The value of `name` in `a=1&b=2`.
fn value<'a>(text: &'a str, between: char, name: &str) -> Option<&'a str> {
    text.split(between).find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
}

/// True for `localhost` and loopback addresses, with any port: a tunnel may use another.
pub fn is_this_machine(host: &str) -> bool {
    if let Ok(address) = host.parse::<SocketAddr>() {
        return address.ip().is_loopback();
    }
    let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return ip.is_loopback();
    }
    let name = host
        .rsplit_once(':')
        .map_or(host, |(name, port)| if port.bytes().all(|b| b.is_ascii_digit()) { name } else { host });
    name.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_its_own() {
        for host in [
            "localhost",
            "localhost:7117",
            "LocalHost:1",
            "127.0.0.1:7117",
            "127.3.2.1",
            "[::1]:7117",
            "[::1]",
        ] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:7117",
            "localhost.evil.example",
            "127.0.0.1.evil.example:7117",
            "192.168.1.2:7117",
            "localhost:x",
            "127.0.0.1@evil.example",
            "0.0.0.0:7117",
            "[::]:7117",
        ] {
            assert!(!is_this_machine(host), "{host}");
        }
        let guard = Guard::for_address("127.0.0.1:7117".parse().unwrap(), Token::of([7; 16]));
        assert_eq!(guard.judge(Some("evil.example"), None, None), Verdict::Stranger);
        assert_eq!(guard.judge(None, None, None), Verdict::Stranger);
    }

    #[test]
    fn the_token_comes_in_the_address_once_and_then_in_the_cookie() {
        let token = Token::of([0xab; 16]);
        let guard = Guard::for_address("0.0.0.0:7117".parse().unwrap(), token.clone());
        let word = token.text();
        let host = Some("school:7117");
        assert_eq!(guard.judge(host, None, None), Verdict::Locked);
        assert_eq!(guard.judge(host, Some("token=ab"), Some("eke-dash-7117=")), Verdict::Locked);
        let Verdict::Admit(cookie) = guard.judge(host, Some(&format!("a=b&token={word}")), None) else {
            panic!("not admitted")
        };
        assert_eq!(cookie, format!("eke-dash-7117={word}; HttpOnly; SameSite=Lax; Path=/"));
        let sent = format!("other=1; eke-dash-7117={word}");
        assert_eq!(guard.judge(host, None, Some(&sent)), Verdict::Welcome);
        assert_eq!(guard.judge(host, None, Some(&sent.replace("7117", "7118"))), Verdict::Locked);
    }

    proptest::proptest! {
        #[test]
        fn any_words_are_judged(host in ".{0,40}", query in ".{0,40}", cookies in ".{0,40}") {
            let guard = Guard::for_address("10.0.0.1:1".parse().unwrap(), Token::of([1; 16]));
            assert_eq!(guard.judge(Some(&host), Some(&query), Some(&cookies)), Verdict::Locked);
            let _ = is_this_machine(&host);
        }
    }
}
