//! Where a file is on the web.
use fluent_uri::{Uri, UriRef};
use narrows_scenario::printable::printable;
use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};

/// What a URL may look like.
const FORM: &str = "http[s]://HOST[:PORT]/PATH";

/// Where a file is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Url {
    pub(super) is_secure: bool,
    /// Host and port, as in the URL.
    pub(super) authority: String,
    pub(super) path: String,
}

impl Url {
    pub(super) fn parse(text: &str) -> Result<Url, String> {
        let wrong = |what: &str| format!("--tcp: {} {what}; allowed: {FORM}", printable(&format!("{text:?}")));
        let after = |scheme: &str| {
            let start = text.get(..scheme.len()).filter(|start| start.eq_ignore_ascii_case(scheme));
            start.map(|_| &text[scheme.len()..])
        };
        let (is_secure, rest) = match (after("https://"), after("http://")) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => return Err(wrong("is no URL of HTTP")),
        };
        if !rest.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(wrong("has a blank, a control character or one that is not ASCII"));
        }
        let rest = rest.split_once('#').map_or(rest, |(before, _)| before);
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.contains('@') {
            return Err(wrong("has a user's name"));
        }
        if authority.is_empty() || authority.starts_with(':') {
            return Err(wrong("has no host"));
        }
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Url { is_secure, authority: authority.to_owned(), path })
    }

    /// The host without a port.
    pub(super) fn host(&self) -> &str {
        match self.port_at() {
            Some(colon) => &self.authority[..colon],
            None => &self.authority,
        }
    }

    fn port_at(&self) -> Option<usize> {
        self.authority.rfind(':').filter(|&colon| !self.authority[colon..].contains(']'))
    }

    pub(super) fn resolve(&self) -> Result<SocketAddr, String> {
        let usual = if self.is_secure { 443 } else { 80 };
        let host =
            if self.port_at().is_some() { self.authority.clone() } else { format!("{}:{usual}", self.authority) };
        let found = host.to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
        found.ok_or_else(|| format!("--tcp: there is no host {:?}; allowed: {FORM}", self.authority))
    }

    /// Where a redirection leads (RFC 3986 §5).
    pub(super) fn join(&self, location: &str) -> Result<Url, String> {
        let wrong = |why: &str| format!("the server leads to {}, {why}", printable(location));
        let base = Uri::parse(self.to_string()).map_err(|_| wrong("from a URL that it cannot be relative to"))?;
        let there = UriRef::parse(location).map_err(|_| wrong("which is no URL"))?;
        let there = there.resolve_against(&base).map_err(|_| wrong("which is no URL"))?;
        let url = Url::parse(there.as_str()).map_err(|_| wrong("which is no URL of HTTP"))?;
        if self.is_secure && !url.is_secure { Err(wrong("which is without TLS")) } else { Ok(url) }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_secure { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).expect("a URL")
    }

    #[test]
    fn a_url_has_a_host_and_a_path() {
        let of = |text| Url::parse(text).map(|url| (url.authority.clone(), url.path.clone(), url.to_string()));
        let known = |authority: &str, path: &str| {
            Ok((authority.to_owned(), path.to_owned(), format!("http://{authority}{path}")))
        };
        assert_eq!(of("http://a.example/b?c#d"), known("a.example", "/b?c"));
        assert_eq!(of("HTTP://[::1]:8080"), known("[::1]:8080", "/"));
        assert_eq!(of("http://a?b"), known("a", "/?b"));
        assert!(url("HTTPS://a/").is_secure && !url("http://a/").is_secure);
        for (text, part) in [
            ("ftp://a/", "no URL"),
            ("https:///x", "no host"),
            ("http:///x", "no host"),
            ("http://:80/x", "no host"),
            ("http://u@a/", "user's name"),
            ("http://a/b c", "a blank"),
            ("http://a/\r\nX: y", "a blank"),
            ("http://ä/", "not ASCII"),
            ("", "no URL"),
        ] {
            let said = of(text).expect_err("a fault");
            assert!(said.contains(part) && said.contains("allowed: http[s]://"), "{text:?}: {said}");
        }
    }

    #[test]
    fn a_host_without_a_port_has_the_usual_one() {
        let at = |text: &str| url(text).resolve().expect("an address").to_string();
        assert_eq!(at("http://127.0.0.1/x"), "127.0.0.1:80");
        assert_eq!(at("https://127.0.0.1/x"), "127.0.0.1:443");
        assert_eq!(at("http://[::1]/x"), "[::1]:80");
        assert_eq!(at("http://[::1]:81/x"), "[::1]:81");
        assert_eq!(
            [url("http://[::1]:81/x").host(), url("http://a:1/").host(), url("http://a/").host()],
            ["[::1]", "a", "a"]
        );
    }

    #[test]
    fn a_redirection_may_be_relative_and_keeps_tls() {
        let to = |from: &str, location: &str| url(from).join(location).map(|url| url.to_string());
        assert_eq!(to("http://a/b/c", "d?e").as_deref(), Ok("http://a/b/d?e"));
        assert_eq!(to("http://a/b/c", "../d").as_deref(), Ok("http://a/d"));
        assert_eq!(to("http://a/b", "//c/d").as_deref(), Ok("http://c/d"));
        assert_eq!(to("http://a/b", "https://c:1/d#e").as_deref(), Ok("https://c:1/d"));
        assert!(to("https://a/", "http://a/").is_err_and(|why| why.contains("without TLS")));
        assert!(to("http://a/", "ftp://a/").is_err_and(|why| why.contains("no URL of HTTP")));
        assert!(to("http://a/", "http://a b/").is_err_and(|why| why.contains("no URL")));
    }
}
