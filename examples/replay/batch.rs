//! Requests read ahead, so that policies can be timed without the reading.

use ratekeeper::Timestamp;

use crate::args::Key;
use crate::line::Line;

const MAX_REQUESTS: usize = 4096;
const MAX_KEY_BYTES: usize = 1 << 20;

/// A bounded number of requests: each its key and its time. The keys lie in one buffer that is reused, so
/// a request allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    keys: String,
    /// Where each key ends, and its request's time.
    requests: Vec<(usize, Timestamp)>,
}

impl Batch {
    pub(crate) fn push(&mut self, key: Key, line: &Line<'_>, at: Timestamp) {
        // Bytes that are not UTF-8 become U+FFFD, which keeps keys printable. At worst two such paths
        // share a limit.
        let mut append = |bytes: &[u8]| self.keys.push_str(&String::from_utf8_lossy(bytes));
        match key {
            Key::Ip => append(line.client),
            Key::Path => append(line.path()),
            Key::IpAndPath => {
                append(line.client);
                append(b" ");
                append(line.path());
            }
        }
        self.requests.push((self.keys.len(), at));
    }

    /// The keys and times, in the order of the log.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, Timestamp)> {
        let mut start = 0;
        self.requests.iter().map(move |&(end, at)| {
            let key = &self.keys[start..end];
            start = end;
            (key, at)
        })
    }

    pub(crate) fn is_full(&self) -> bool {
        self.requests.len() >= MAX_REQUESTS || self.keys.len() >= MAX_KEY_BYTES
    }

    pub(crate) fn clear(&mut self) {
        self.keys.clear();
        self.requests.clear();
    }
}

#[cfg(test)]
mod tests {
    use ratekeeper::Timestamp;

    use super::Batch;
    use crate::args::Key;
    use crate::line::Line;

    #[test]
    fn keys_come_back_whole_and_in_order() {
        let line = Line::parse(b"::1 - - [t] \"GET /a\xffb?q HTTP/1.1\" 200 1").unwrap();
        let at = Timestamp::from_nanos;
        let mut batch = Batch::default();
        for (key, nanos) in [(Key::Ip, 1), (Key::Path, 2), (Key::IpAndPath, 3)] {
            batch.push(key, &line, at(nanos));
        }
        let requests: Vec<_> = batch.iter().collect();
        assert_eq!(
            requests,
            [
                ("::1", at(1)),
                ("/a\u{fffd}b", at(2)),
                ("::1 /a\u{fffd}b", at(3))
            ]
        );
        batch.clear();
        assert_eq!(batch.iter().count(), 0);
    }
}
