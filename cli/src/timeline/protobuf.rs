//! The part of protobuf's wire format that a trace needs: numbers, texts, messages within messages.

/// The numbers of the wire types.
const VARINT: u32 = 0;
const FIXED_64: u32 = 1;
const LENGTH_DELIMITED: u32 = 2;

/// A message that is being written.
#[derive(Debug, Default)]
pub struct Message(Vec<u8>);

impl Message {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Makes it empty; its memory stays.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// A field of type `uint64`, `uint32`, `int32` (not negative), `bool` or of an enumeration.
    pub fn number(&mut self, field: u32, value: u64) {
        self.tag(field, VARINT);
        self.varint(value);
    }

    /// A field of type `fixed64`.
    pub fn fixed(&mut self, field: u32, value: u64) {
        self.tag(field, FIXED_64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// A field of type `double`.
    pub fn double(&mut self, field: u32, value: f64) {
        self.fixed(field, value.to_bits());
    }

    /// A field of type `string`.
    pub fn text(&mut self, field: u32, value: &str) {
        self.tag(field, LENGTH_DELIMITED);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value.as_bytes());
    }

    /// A field that is a message which is there already.
    pub fn embed(&mut self, field: u32, message: &Message) {
        self.tag(field, LENGTH_DELIMITED);
        self.varint(message.0.len() as u64);
        self.0.extend_from_slice(&message.0);
    }

    /// A field that is a message.
    pub fn message(&mut self, field: u32, fill: impl FnOnce(&mut Message)) {
        self.tag(field, LENGTH_DELIMITED);
        let start = self.0.len();
        // Most messages are shorter than 128 bytes: their length takes one byte, which is left free.
        self.0.push(0);
        fill(self);
        let length = self.0.len() - start - 1;
        if length < 128 {
            self.0[start] = length as u8;
        } else {
            let mut prefix = Message::default();
            prefix.varint(length as u64);
            self.0.splice(start..=start, prefix.0);
        }
    }

    fn tag(&mut self, field: u32, wire_type: u32) {
        self.varint(u64::from(field << 3 | wire_type));
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 128 {
            self.0.push(value as u8 | 128);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of protobuf.dev/programming-guides/encoding.
    #[test]
    fn the_wire_format_is_that_of_its_documentation() {
        let mut message = Message::default();
        message.number(1, 150);
        assert_eq!(message.bytes(), [0x08, 0x96, 0x01]);
        message.clear();
        message.text(2, "testing");
        assert_eq!(message.bytes(), [0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67]);
        message.clear();
        message.message(3, |inner| inner.number(1, 150));
        assert_eq!(message.bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
    }

    #[test]
    fn long_messages_have_long_lengths() {
        let mut message = Message::default();
        message.message(1, |inner| inner.message(1, |inner| inner.text(2, &"x".repeat(300))));
        // 300 bytes after a tag and 2 bytes of length are 303, which are 2 bytes of length again.
        assert_eq!(message.bytes()[..9], [0x0a, 0xb2, 0x02, 0x0a, 0xaf, 0x02, 0x12, 0xac, 0x02]);
        assert_eq!(message.bytes().len(), 309);
    }
}
