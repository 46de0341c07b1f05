//! Digests that a program may send to the control plane, in section `kaido.digests`. Each digest is
//!
//! ```text
//! u32 size; u32 name   // size of a value and length of the name in bytes, little-endian
//! name
//! ```

use super::{BadObject, Digest, MAX_DIGEST, MAX_DIGESTS};

/// Size of the header before a name, in bytes.
const HEAD: usize = 8;

impl Digest {
    /// Validates the size of the digest.
    ///
    /// # Errors
    ///
    /// If the size is 0 or exceeds the maximum.
    pub fn check(&self) -> Result<(), BadObject> {
        if (1..=MAX_DIGEST).contains(&self.size) {
            return Ok(());
        }
        let (what, count) = ("bytes of a digest", self.size as usize);
        match count {
            0 => Err(BadObject::Missing("byte in a digest")),
            _ => Err(BadObject::TooMuch { what, count, most: MAX_DIGEST as usize }),
        }
    }
}

/// Encodes digests.
pub(super) fn encode(digests: &[Digest]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for digest in digests {
        bytes.extend(digest.size.to_le_bytes());
        bytes.extend((digest.name.len() as u32).to_le_bytes());
        bytes.extend(digest.name.as_bytes());
    }
    bytes
}

/// Decodes the section's digests.
pub(super) fn decode(mut bytes: &[u8]) -> Result<Vec<Digest>, BadObject> {
    let cut = || BadObject::Elf("its digests are cut off".to_owned());
    let mut all = Vec::new();
    while !bytes.is_empty() {
        if all.len() == MAX_DIGESTS {
            let (what, count) = ("digests", all.len() + 1);
            return Err(BadObject::TooMuch { what, count, most: MAX_DIGESTS });
        }
        let (head, rest) = bytes.split_first_chunk::<HEAD>().ok_or_else(cut)?;
        let [size, length] = [0, 4].map(|at| {
            let mut four = [0; 4];
            four.copy_from_slice(&head[at..at + 4]);
            u32::from_le_bytes(four)
        });
        let (name, rest) = rest.split_at_checked(length as usize).ok_or_else(cut)?;
        let digest = Digest { name: String::from_utf8_lossy(name).into_owned(), size };
        digest.check()?;
        all.push(digest);
        bytes = rest;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_come_as_they_went() {
        let digest = |name: &str, size| Digest { name: name.to_owned(), size };
        let all = vec![digest("c.seen", 12), digest("c.odd", MAX_DIGEST)];
        let bytes = encode(&all);
        assert_eq!(decode(&bytes), Ok(all));
        assert!(matches!(decode(&bytes[..bytes.len() - 1]), Err(BadObject::Elf(_))));
        assert!(matches!(decode(&bytes[..5]), Err(BadObject::Elf(_))));
        let large = encode(&[digest("x", MAX_DIGEST + 1)]);
        assert!(matches!(decode(&large), Err(BadObject::TooMuch { count: 257, .. })));
        assert!(decode(&encode(&[digest("x", 0)])).is_err());
        let many = encode(&vec![digest("x", 1); MAX_DIGESTS + 1]);
        assert!(matches!(decode(&many), Err(BadObject::TooMuch { what: "digests", .. })));
    }
}
