//! Names of the values that a program reads from its tenant's VM, in section `kaido.vm`. In C it is
//!
//! ```text
//! __attribute__((section("kaido.vm"))) const char keys[] = "net.utilisation\0app.queue";
//! ```

use super::BadObject;
use crate::vm::{MAX_KEYS, is_name};

/// Encodes names.
pub(super) fn encode(keys: &[String]) -> Vec<u8> {
    keys.join("\0").into_bytes()
}

/// Decodes names. Trailing zero bytes are ignored.
pub(super) fn decode(bytes: &[u8]) -> Result<Vec<String>, BadObject> {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
    if end == 0 {
        return Ok(Vec::new());
    }
    let mut keys = Vec::new();
    for name in bytes[..end].split(|byte| *byte == 0) {
        if keys.len() == MAX_KEYS {
            let count = bytes[..end].split(|byte| *byte == 0).count();
            return Err(BadObject::TooMuch { what: "keys", count, most: MAX_KEYS });
        }
        match std::str::from_utf8(name).ok().filter(|name| is_name(name)) {
            Some(name) => keys.push(name.to_owned()),
            None => return Err(BadObject::Key(String::from_utf8_lossy(name).into_owned())),
        }
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_as_they_went() {
        for keys in [vec![], vec!["a"], vec!["net.utilisation", "b"]] {
            let keys: Vec<String> = keys.into_iter().map(str::to_owned).collect();
            assert_eq!(decode(&encode(&keys)), Ok(keys));
        }
        assert_eq!(decode(b"a\0b\0\0"), Ok(vec!["a".into(), "b".into()]), "as C ends texts");
        assert!(matches!(decode(b"a\0\0b"), Err(BadObject::Key(_))));
        assert!(matches!(decode(b"a b"), Err(BadObject::Key(_))));
        let many = "k\0".repeat(MAX_KEYS + 1);
        assert!(matches!(decode(many.as_bytes()), Err(BadObject::TooMuch { count: 65, .. })));
    }
}
