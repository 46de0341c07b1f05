//! Distribution of weights over a fixed number of slots.

use bpf::srv6::types::limit;

const PLACES: usize = limit::LIMIT_SPREAD.0 as usize;

/// Returns the list of each slot, as close to the weights as whole slots allow (largest
/// remainders). Each list gets at least one slot, as far as there are slots.
pub(super) fn spread(lists: &[u32], weights: &[u32]) -> [u32; PLACES] {
    let total: u64 = weights.iter().map(|weight| u64::from(*weight)).sum::<u64>().max(1);
    let exact = |weight: u32| u64::from(weight) * PLACES as u64;
    let mut shares: Vec<u64> =
        weights.iter().map(|weight| (exact(*weight) / total).max(1)).collect();
    let mut order: Vec<usize> = (0..shares.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(exact(weights[*at]) % total));
    let mut given: u64 = shares.iter().sum();
    for at in order.iter().cycle().take(PLACES) {
        if given < PLACES as u64 {
            shares[*at] += 1;
            given += 1;
        }
    }
    // Small weights were rounded up to one slot. The largest shares compensate.
    while given > PLACES as u64 {
        let Some(largest) = shares.iter_mut().max() else { break };
        *largest -= 1;
        given -= 1;
    }
    let mut places = [0; PLACES];
    let filled = lists
        .iter()
        .zip(&shares)
        .flat_map(|(list, share)| std::iter::repeat_n(*list, *share as usize));
    for (place, list) in places.iter_mut().zip(filled) {
        *place = list;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(weights: &[u32]) -> Vec<usize> {
        let lists: Vec<u32> = (1..=weights.len() as u32).collect();
        let places = spread(&lists, weights);
        lists.iter().map(|list| places.iter().filter(|place| *place == list).count()).collect()
    }

    #[test]
    fn weights_become_places() {
        assert_eq!(shares(&[1, 1]), [32, 32]);
        assert_eq!(shares(&[3, 1]), [48, 16]);
        assert_eq!(shares(&[1, 1, 1]).iter().sum::<usize>(), 64);
        assert_eq!(shares(&[1_000_000, 1]), [63, 1]);
        assert_eq!(shares(&[u32::MAX; 8]), [8; 8]);
        assert_eq!(shares(&[1; 64]), [1; 64]);
    }
}
