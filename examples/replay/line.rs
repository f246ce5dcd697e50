//! One line of an access log in the Common or Combined format.

/// The parts of a line that a limiter needs, borrowed from it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// The client's address, or its name where the server looks names up.
    pub(crate) client: &'a [u8],
    /// As in `10/Oct/2026:13:55:36 +0000`.
    pub(crate) time: &'a [u8],
    /// As in `GET /search?q=1 HTTP/1.1`, escaped as the server wrote it; empty or arbitrary when the
    /// client sent no HTTP.
    request: &'a [u8],
}

impl<'a> Line<'a> {
    /// Splits `client ident user [time] "request" status bytes`. What follows, such as the referrer and
    /// the user agent of the Combined format, is ignored.
    pub(crate) fn parse(line: &'a [u8]) -> Option<Self> {
        let (client, rest) = split_at_byte(line, b' ')?;
        // The user's name may contain spaces, so the time is what ends it.
        let (ident_and_user, rest) = split_at_pair(rest, b" [")?;
        let (time, rest) = split_at_byte(rest, b']')?;
        let rest = rest.strip_prefix(b" \"")?;
        let (request, rest) = split_at_quote(rest)?;
        let mut numbers = rest.strip_prefix(b" ")?.split(|&byte| byte == b' ');
        let (status, bytes) = (numbers.next()?, numbers.next()?);

        let is_number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
        let is_complete = !client.is_empty()
            && ident_and_user.contains(&b' ')
            && status.len() == 3
            && is_number(status)
            && (bytes == b"-" || is_number(bytes));
        is_complete.then_some(Self {
            client,
            time,
            request,
        })
    }

    /// The request's target without its query; `-` when the request was not HTTP.
    pub(crate) fn path(&self) -> &'a [u8] {
        let target = self.request.split(|&byte| byte == b' ').nth(1);
        let path = target.and_then(|target| target.split(|&byte| byte == b'?').next());
        path.filter(|path| !path.is_empty()).unwrap_or(b"-")
    }
}

fn split_at_byte(text: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|&byte| byte == separator)?;
    Some((&text[..at], &text[at + 1..]))
}

fn split_at_pair<'a>(text: &'a [u8], separator: &[u8; 2]) -> Option<(&'a [u8], &'a [u8])> {
    let at = text.windows(2).position(|pair| pair == separator)?;
    Some((&text[..at], &text[at + 2..]))
}

/// Splits at the first quote that no backslash escapes. (nginx writes quotes as `\x22`, Apache as
/// `\"`.)
fn split_at_quote(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut is_escaped = false;
    let at = text.iter().position(|&byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    })?;
    Some((&text[..at], &text[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::Line;

    const COMBINED: &str = r#"192.0.2.7 - frank [10/Oct/2026:13:55:36 +0000] "GET /a/b?c=d HTTP/1.1" 200 2326 "http://x.example/" "agent [1] \"q\"""#;

    fn parse(line: &str) -> Option<Line<'_>> {
        Line::parse(line.as_bytes())
    }

    fn path(request: &str) -> String {
        let line = format!(r#"h - - [t] "{request}" 200 0"#);
        let path = parse(&line)
            .expect("a well-formed line")
            .path()
            .escape_ascii();
        path.to_string()
    }

    #[test]
    fn combined_and_common_lines_have_the_same_parts() {
        let expected = Line {
            client: b"192.0.2.7",
            time: b"10/Oct/2026:13:55:36 +0000",
            request: b"GET /a/b?c=d HTTP/1.1",
        };
        assert_eq!(parse(COMBINED), Some(expected));
        let (common, _) = COMBINED.split_once(" \"http:").expect("the referrer");
        assert_eq!(parse(common), parse(COMBINED));
    }

    #[test]
    fn a_user_may_contain_spaces_and_a_size_may_be_missing() {
        let line = parse(r#"::1 - Jane Doe [t] "GET / HTTP/1.0" 304 -"#).expect("well formed");
        assert_eq!((line.client, line.time), (&b"::1"[..], &b"t"[..]));
    }

    #[test]
    fn quotes_inside_the_request_do_not_end_it() {
        let line = parse(r#"h - - [t] "GET /?q=\"a\" HTTP/1.1" 200 1"#).expect("Apache's escape");
        assert_eq!(line.request, br#"GET /?q=\"a\" HTTP/1.1"#);
        let line = parse(r#"h - - [t] "GET /\\" 200 1"#).expect("an escaped backslash");
        assert_eq!(line.request, br"GET /\\");
    }

    #[test]
    fn the_path_is_the_target_without_its_query() {
        assert_eq!(path("GET /a/b?c=d?e HTTP/1.1"), "/a/b");
        assert_eq!(path("GET / HTTP/1.1"), "/");
        assert_eq!(path("OPTIONS * HTTP/1.1"), "*");
        assert_eq!(path("GET /old"), "/old"); // HTTP/0.9
    }

    #[test]
    fn a_request_that_is_not_http_has_the_path_of_none() {
        for request in ["", "-", r"\x16\x03\x01", "GET ", "GET ?a=b HTTP/1.1"] {
            assert_eq!(path(request), "-", "{request}");
        }
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_kept() {
        let line = Line::parse(b"h - - [t] \"GET /\xff HTTP/1.1\" 200 1").expect("well formed");
        assert_eq!(line.path(), b"/\xff");
    }

    #[test]
    fn lines_of_another_form_are_refused() {
        let malformed = [
            "",
            "hello",
            r#" - - [t] "GET / HTTP/1.1" 200 1"#,   // no client
            r#"h - [t] "GET / HTTP/1.1" 200 1"#,    // no ident or no user
            r#"h - - t "GET / HTTP/1.1" 200 1"#,    // no brackets
            r#"h - - [t "GET / HTTP/1.1" 200 1"#,   // no closing bracket
            r#"h - - [t] GET / HTTP/1.1 200 1"#,    // no quotes
            r#"h - - [t] "GET / HTTP/1.1 200 1"#,   // no closing quote
            r#"h - - [t] "GET / HTTP/1.1\" 200 1"#, // the closing quote is escaped
            r#"h - - [t] "GET / HTTP/1.1" 200"#,    // no size
            r#"h - - [t] "GET / HTTP/1.1" 20 1"#,   // status too short
            r#"h - - [t] "GET / HTTP/1.1" 200 1k"#, // a size with a unit
            r#"h - - [t] "GET / HTTP/1.1"200 1"#,   // no space
        ];
        for line in malformed {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
