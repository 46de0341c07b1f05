//! The model's hash function, shared by the interpreter and the execution environment of compiled
//! programs.

/// Bob Jenkins' lookup3 (hashlittle with initial value 0). p4c's run time calls it `hash`.
pub fn lookup3(bytes: &[u8]) -> u32 {
    lookup3_of(bytes.len(), |at, part| part.copy_from_slice(&bytes[at..][..part.len()]))
}

/// Same as [`lookup3`], for bytes that cannot be borrowed. `read` copies a part of them, given its
/// start offset.
pub fn lookup3_of(length: usize, mut read: impl FnMut(usize, &mut [u8])) -> u32 {
    let mut state = [0xdead_beef_u32.wrapping_add(length as u32); 3];
    if length == 0 {
        return state[2];
    }
    let mut add = |state: &mut [u32; 3], at: usize| {
        let mut part = [0_u8; 12];
        read(at, &mut part[..(length - at).min(12)]);
        for (word, four) in state.iter_mut().zip(part.as_chunks::<4>().0) {
            *word = word.wrapping_add(u32::from_le_bytes(*four));
        }
    };
    let mut at = 0;
    while length - at > 12 {
        add(&mut state, at);
        let [mut a, mut b, mut c] = state;
        for (one, two, three, by) in
            [(0, 2, 1, 4), (1, 0, 2, 6), (2, 1, 0, 8), (0, 2, 1, 16), (1, 0, 2, 19), (2, 1, 0, 4)]
        {
            let mut words = [a, b, c];
            words[one] = words[one].wrapping_sub(words[two]) ^ words[two].rotate_left(by);
            words[two] = words[two].wrapping_add(words[three]);
            [a, b, c] = words;
        }
        state = [a, b, c];
        at += 12;
    }
    add(&mut state, at);
    let [mut a, mut b, mut c] = state;
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_lookup3() {
        // Reference values from the driver in lookup3.c, for hashlittle with initial value 0.
        assert_eq!(lookup3(b""), 0xdead_beef);
        assert_eq!(lookup3(b"Four score and seven years ago"), 0x1777_0551);
    }
}
