//! Access to a run: a request must know its token, and must be made to this machine itself.
//!
//! Pages of other sites can make a browser send requests to 127.0.0.1. They do not know the token, a browser does not give them the cookie
//! that has it (`SameSite=Strict`), and a name of theirs that suddenly stands for 127.0.0.1 is not one that the header `Host` may have.

use cookie::{Cookie, SameSite};
use hyper::header::{AUTHORIZATION, COOKIE, HOST, HeaderMap, ORIGIN};
use std::borrow::Cow;
use std::io;
use subtle::ConstantTimeEq;

/// Random bytes of a token.
const TOKEN_BYTES: usize = 16;

/// The token that requests must show, and the port that they must name.
#[derive(Clone, Debug)]
pub struct Access {
    token: String,
    port: u16,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It is not for this machine's own address.
    #[error("the request must be for 127.0.0.1 or localhost, and this port")]
    OtherHost,
    /// It comes from a page of another site.
    #[error("the request comes from a page of another site")]
    OtherSite,
    /// It does not have the token.
    #[error(
        "the token is missing or wrong: the run has printed its address with the token (?token=...); scripts may send 'Authorization: Bearer TOKEN'"
    )]
    NoToken,
}

impl Access {
    /// For requests to a port, with a new token.
    ///
    /// # Errors
    ///
    /// If the system has no random numbers.
    pub fn new(port: u16) -> io::Result<Access> {
        let mut bytes = [0; TOKEN_BYTES];
        let mut filled = 0;
        while filled < TOKEN_BYTES {
            filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())?;
        }
        let token = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Access { token, port })
    }

    /// The token.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The address with the token, for a browser.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/?token={}", self.port, self.token)
    }

    /// The name of the cookie: browsers do not tell ports apart.
    fn cookie_name(&self) -> String {
        format!("balar_{}", self.port)
    }

    /// The cookie that the page is given.
    pub fn cookie(&self) -> String {
        let cookie = Cookie::build((self.cookie_name(), self.token.as_str()));
        cookie.path("/").http_only(true).same_site(SameSite::Strict).build().to_string()
    }

    /// Lets a request pass, or says why not. `query` is what follows "?" in its path.
    ///
    /// # Errors
    ///
    /// Why it is refused.
    pub fn check(&self, headers: &HeaderMap, query: Option<&str>) -> Result<(), Refusal> {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let is_own = |host: &str| {
            [format!("127.0.0.1:{}", self.port), format!("localhost:{}", self.port)].contains(&host.to_owned())
        };
        if !text(HOST).is_some_and(is_own) {
            return Err(Refusal::OtherHost);
        }
        if headers.contains_key(ORIGIN)
            && !text(ORIGIN).and_then(|origin| origin.strip_prefix("http://")).is_some_and(is_own)
        {
            return Err(Refusal::OtherSite);
        }
        let by_query = parameter(query, "token");
        let by_header = text(AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        let name = self.cookie_name();
        let mut cookies = text(COOKIE).into_iter().flat_map(Cookie::split_parse).flatten();
        let by_cookie = cookies.find(|cookie| cookie.name() == name);
        let given = [by_query.as_deref(), by_header, by_cookie.as_ref().map(Cookie::value)];
        if given.into_iter().flatten().any(|given| self.is_token(given)) { Ok(()) } else { Err(Refusal::NoToken) }
    }

    /// Takes as long for a token that is nearly right as for any other.
    fn is_token(&self, given: &str) -> bool {
        self.token.as_bytes().ct_eq(given.as_bytes()).into()
    }
}

/// The value of a parameter of a query, decoded.
pub fn parameter<'a>(query: Option<&'a str>, name: &str) -> Option<Cow<'a, str>> {
    form_urlencoded::parse(query?.as_bytes()).find(|(own, _)| own == name).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::{HeaderName, HeaderValue};

    fn headers(pairs: &[(HeaderName, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_str(value).expect("plain"))).collect()
    }

    #[test]
    fn a_request_needs_the_token_and_this_host() {
        let access = Access { token: "abc123".to_owned(), port: 80 };
        let of = |pairs: &[(HeaderName, &str)], query: Option<&str>| access.check(&headers(pairs), query);
        let own = (HOST, "127.0.0.1:80");
        assert_eq!(of(std::slice::from_ref(&own), Some("x=1&token=abc123")), Ok(()));
        assert_eq!(of(&[(HOST, "localhost:80"), (AUTHORIZATION, "Bearer abc123")], None), Ok(()));
        assert_eq!(of(&[own.clone(), (COOKIE, "other=1; balar_80=abc123")], None), Ok(()));
        assert_eq!(of(&[own.clone(), (ORIGIN, "http://127.0.0.1:80")], Some("token=abc123")), Ok(()));
        for wrong in ["", "abc12", "abc1234", "abc124"] {
            assert_eq!(
                of(std::slice::from_ref(&own), Some(&format!("token={wrong}"))),
                Err(Refusal::NoToken),
                "{wrong}"
            );
        }
        assert_eq!(of(&[own.clone(), (COOKIE, "balar_81=abc123")], None), Err(Refusal::NoToken), "another run's");
        assert_eq!(
            of(&[own.clone(), (COOKIE, "nothing; =1; balar_80=abc12;balar_8=abc123")], None),
            Err(Refusal::NoToken)
        );
        for host in ["127.0.0.1", "127.0.0.1:81", "evil.example:80"] {
            assert_eq!(of(&[(HOST, host)], Some("token=abc123")), Err(Refusal::OtherHost), "{host}");
        }
        assert_eq!(of(&[], Some("token=abc123")), Err(Refusal::OtherHost));
        assert_eq!(of(&[own, (ORIGIN, "http://evil.example")], Some("token=abc123")), Err(Refusal::OtherSite));
    }

    #[test]
    fn the_page_is_given_a_cookie_for_this_site_alone() {
        let access = Access { token: "abc123".to_owned(), port: 80 };
        let cookie = access.cookie();
        let mut parts: Vec<&str> = cookie.split("; ").collect();
        assert_eq!(parts.remove(0), "balar_80=abc123");
        parts.sort_unstable();
        assert_eq!(parts, ["HttpOnly", "Path=/", "SameSite=Strict"]);
    }

    #[test]
    fn parameters_are_decoded() {
        let query = Some("a=1&time=2%20us&token=x+%41&empty=&time=3");
        for (name, value) in [("a", Some("1")), ("time", Some("2 us")), ("token", Some("x A")), ("empty", Some(""))] {
            assert_eq!(parameter(query, name).as_deref(), value, "{name}");
        }
        assert_eq!((parameter(query, "tim"), parameter(None, "a")), (None, None));
    }

    #[test]
    fn tokens_differ() {
        let [one, other] = [Access::new(1), Access::new(1)].map(|access| access.expect("random numbers"));
        assert_eq!(one.token().len(), 2 * TOKEN_BYTES);
        assert_ne!(one.token(), other.token());
    }
}
