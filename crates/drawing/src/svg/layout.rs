//! Force-directed graph layout: edges are springs, and all vertices repel each other (Fruchterman
//! and Reingold, 1991). It is deterministic: the same graph gives the same drawing.

use std::collections::VecDeque;

/// A position in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Place {
    pub(super) x: f64,
    pub(super) y: f64,
}

/// Ideal length of an edge.
const LENGTH: f64 = 110.0;
/// Minimum distance between two vertices in the final layout.
const NEAREST: f64 = 95.0;
/// Pull towards the centre, which keeps disconnected components close.
const GRAVITY: f64 = 0.02;
const ROUNDS: usize = 400;
/// Limit on the number of pairs visited: a large graph gets fewer rounds.
const PAIRS: usize = 200_000_000;

/// Positions of `count` vertices connected by `edges`; the smallest coordinates are 0.
pub(super) fn layout(count: usize, edges: &[(usize, usize)]) -> Vec<Place> {
    let mut places = spiral(&breadth_first(count, edges));
    let rounds = (PAIRS / (count * count).max(1)).clamp(10, ROUNDS);
    let hottest = LENGTH * (count as f64).sqrt() / 4.0;
    for round in 0..rounds {
        let warmth = hottest * (1.0 - round as f64 / rounds as f64) + 1.0;
        step(&mut places, edges, warmth);
    }
    apart(&mut places);
    places
}

/// Breadth-first order, starting with the vertices of highest degree.
fn breadth_first(count: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let mut near = vec![Vec::new(); count];
    for &(a, b) in edges {
        near[a].push(b);
        near[b].push(a);
    }
    let mut starts: Vec<usize> = (0..count).collect();
    starts.sort_by_key(|&at| std::cmp::Reverse(near[at].len()));
    let (mut seen, mut order, mut queue) = (vec![false; count], Vec::new(), VecDeque::new());
    for start in starts {
        queue.push_back(start);
        while let Some(at) = queue.pop_front() {
            if !std::mem::replace(&mut seen[at], true) {
                order.push(at);
                queue.extend(near[at].iter().copied().filter(|&next| !seen[next]));
            }
        }
    }
    order
}

/// Places the first vertex in the centre, the others around it at the golden angle.
fn spiral(order: &[usize]) -> Vec<Place> {
    let mut places = vec![Place::default(); order.len()];
    for (rank, &at) in order.iter().enumerate() {
        let (angle, radius) = (rank as f64 * 2.399_963, LENGTH * (rank as f64).sqrt() / 2.0);
        // Drawings are wider than they are high.
        places[at] = Place { x: 1.4 * radius * angle.cos(), y: radius * angle.sin() };
    }
    places
}

fn step(places: &mut [Place], edges: &[(usize, usize)], warmth: f64) {
    let mut moves = vec![Place::default(); places.len()];
    let mut pull = |a: usize, b: usize, strength: &dyn Fn(f64) -> f64| {
        let (x, y) = (places[b].x - places[a].x, places[b].y - places[a].y);
        let distance = x.hypot(y).max(0.1);
        let force = strength(distance) / distance;
        moves[a].x += x * force;
        moves[a].y += y * force;
        moves[b].x -= x * force;
        moves[b].y -= y * force;
    };
    for a in 0..places.len() {
        for b in a + 1..places.len() {
            pull(a, b, &|distance| -LENGTH * LENGTH / distance);
        }
    }
    for &(a, b) in edges {
        pull(a, b, &|distance| distance * distance / LENGTH);
    }
    for (place, by) in places.iter_mut().zip(moves) {
        let (x, y) = (by.x - GRAVITY * place.x, by.y - 1.5 * GRAVITY * place.y);
        let far = x.hypot(y).max(0.1);
        place.x += x / far * far.min(warmth);
        place.y += y / far * far.min(warmth);
    }
}

/// Scales the layout until the nearest two vertices are far enough apart, within limits, and moves
/// it to the origin.
fn apart(places: &mut [Place]) {
    let mut nearest = f64::INFINITY;
    for (at, a) in places.iter().enumerate() {
        for b in &places[at + 1..] {
            nearest = nearest.min((a.x - b.x).hypot(a.y - b.y));
        }
    }
    let scale = if nearest.is_finite() { (NEAREST / nearest).clamp(1.0, 2.5) } else { 1.0 };
    let left = places.iter().map(|place| place.x).fold(f64::INFINITY, f64::min);
    let top = places.iter().map(|place| place.y).fold(f64::INFINITY, f64::min);
    for place in places {
        *place = Place { x: (place.x - left) * scale, y: (place.y - top) * scale };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_unfolded() {
        let edges: Vec<_> = (0..8).map(|at| (at, (at + 1) % 8)).collect();
        let places = layout(8, &edges);
        let far = |a: usize, b: usize| (places[a].x - places[b].x).hypot(places[a].y - places[b].y);
        for &(a, b) in &edges {
            assert!(far(a, b) < far(a, (a + 4) % 8), "{a}-{b}: {places:?}");
        }
        assert_eq!(places, layout(8, &edges));
    }

    #[test]
    fn nothing_and_one_are_graphs() {
        assert_eq!(layout(0, &[]), []);
        assert_eq!(layout(1, &[]), [Place::default()]);
    }
}
