//! Where the numbered parts of a stream begin. Most parts are as long as the one before, so equal ones in a row share an entry.

/// The beginnings of a stream's parts, numbered from 0.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lengths {
    runs: Vec<EqualParts>,
    /// The next part's number, and where it will begin.
    next: u64,
    end: u64,
}

/// Parts of the same length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct EqualParts {
    /// Number of the first one.
    first: u64,
    /// Where it begins, bytes.
    start: u64,
    len: u32,
}

impl Lengths {
    /// The number of the part that has not been seen yet.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Adds the next part, bytes.
    pub fn push(&mut self, len: u32) {
        if self.runs.last().is_none_or(|run| run.len != len) {
            self.runs.push(EqualParts { first: self.next, start: self.end, len });
        }
        self.next += 1;
        self.end += u64::from(len);
    }

    /// Where a part begins, bytes; the end of the stream for parts that have not been seen.
    pub fn start(&self, part: u64) -> u64 {
        if part >= self.next {
            return self.end;
        }
        let after = self.runs.partition_point(|run| run.first <= part);
        self.runs[after - 1].start + (part - self.runs[after - 1].first) * u64::from(self.runs[after - 1].len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_begin_where_the_earlier_ones_end() {
        let lens = [1448, 1448, 1448, 20, 1448, 1448, 7, 7];
        let mut lengths = Lengths::default();
        assert_eq!((lengths.next(), lengths.start(0), lengths.start(9)), (0, 0, 0));
        lens.iter().for_each(|&len| lengths.push(len));
        let mut expected = 0;
        for (part, &len) in lens.iter().enumerate() {
            assert_eq!(lengths.start(part as u64), expected);
            expected += u64::from(len);
        }
        assert_eq!((lengths.next(), lengths.start(8), lengths.start(100)), (8, expected, expected));
        assert_eq!(lengths.runs.len(), 4);
    }
}
