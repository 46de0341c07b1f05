//! Both ends of a ring in one process, and a client that uses libxdp's view of it.

use std::sync::atomic::{AtomicU32, Ordering};

use xsk::{Consumer, Descriptor, Frames, Offsets, Producer, RingMemory, State, WrongState};

const SIZE: u32 = 8;

fn ends<T: Copy>(memory: &RingMemory) -> (Producer<T>, Consumer<T>) {
    // SAFETY: the memory outlives the test's ends, of which there is one each.
    unsafe { (Producer::new(&memory.view()), Consumer::new(&memory.view())) }
}

/// Sets an index as the other side would.
fn set(index: *mut u32, value: u32) {
    // SAFETY: the ring's memory is alive.
    unsafe { AtomicU32::from_ptr(index) }.store(value, Ordering::Release);
}

#[test]
fn entries_arrive_in_order_across_the_end_of_the_ring() {
    let memory = RingMemory::new(Offsets::OWN, SIZE, 2).unwrap();
    let (mut producer, mut consumer) = ends::<Descriptor>(&memory);
    let descriptor = |number: u64| Descriptor { address: number << 12, length: 60, options: 0 };
    let (mut put, mut taken) = (0, 0);
    for _ in 0..100 {
        for _ in 0..producer.free().min(5) {
            producer.put(descriptor(put));
            put += 1;
        }
        assert_eq!(consumer.available(), 0, "unpublished entries are not visible");
        producer.publish();
        for _ in 0..consumer.available() {
            assert_eq!(consumer.take(), descriptor(taken));
            taken += 1;
        }
        consumer.release();
    }
    assert_eq!((put, taken), (500, 500));
}

#[test]
fn a_full_ring_has_no_free_entry_until_some_are_released() {
    let memory = RingMemory::new(Offsets::OWN, SIZE, 1).unwrap();
    let (mut producer, mut consumer) = ends::<u64>(&memory);
    (0..u64::from(SIZE)).for_each(|number| producer.put(number));
    producer.publish();
    assert_eq!((producer.free(), producer.pending(), consumer.available()), (0, SIZE, SIZE));
    consumer.take();
    assert_eq!(producer.free(), 0);
    consumer.release();
    assert_eq!((producer.free(), producer.pending()), (1, SIZE - 1));
}

#[test]
fn indices_wrap_around() {
    let memory = RingMemory::new(Offsets::OWN, SIZE, 1).unwrap();
    let view = memory.view();
    set(view.producer, u32::MAX - 2);
    set(view.consumer, u32::MAX - 2);
    let (mut producer, mut consumer) = ends::<u64>(&memory);
    (0..u64::from(SIZE)).for_each(|number| producer.put(number));
    producer.publish();
    let taken: Vec<u64> = (0..consumer.available()).map(|_| consumer.take()).collect();
    assert_eq!(taken, [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn an_invalid_index_of_the_other_side_leads_out_of_no_ring() {
    let memory = RingMemory::new(Offsets::OWN, SIZE, 1).unwrap();
    let (producer, consumer) = ends::<u64>(&memory);
    let view = memory.view();
    for (invalid, available) in [(1, 1), (9, SIZE), (1 << 31, SIZE), (u32::MAX, SIZE)] {
        // A consumer that is ahead of the producer, and a producer far ahead of the consumer.
        set(view.consumer, invalid);
        let free = if invalid == u32::MAX { SIZE - 1 } else { 0 };
        assert_eq!(producer.free(), free, "{invalid}");
        set(view.consumer, 0);
        set(view.producer, invalid);
        assert_eq!(consumer.available(), available, "{invalid}");
    }
}

#[test]
fn a_ring_may_ask_for_system_calls() {
    let memory = RingMemory::new(Offsets::OWN, SIZE, 1).unwrap();
    let (end, _) = ends::<u64>(&memory);
    assert!(!end.needs_wakeup());
    memory.ask_for_wakeups();
    assert!(end.needs_wakeup());
}

#[test]
fn a_frame_has_one_owner() {
    let frames = Frames::new(4 * 2048, 2048, false);
    let step = |address, from, to| frames.step(address, from, to);
    // Any address within the frame, as after the kernel's headroom.
    assert_eq!(step(2048, State::Client, State::Receiving), Ok(()));
    assert_eq!(frames.count(State::Receiving), 1);
    assert_eq!(step(2048 + 256, State::Receiving, State::Client), Ok(()));
    assert_eq!(step(2048 + 256, State::Receiving, State::Client), Err(WrongState));
    assert_eq!(step(4 * 2048, State::Client, State::Receiving), Err(WrongState));
    assert_eq!(step(u64::MAX, State::Client, State::Receiving), Err(WrongState));
    assert_eq!(frames.count(State::Receiving), 0);
}

#[test]
fn an_unaligned_frame_begins_anywhere() {
    let frames = Frames::new(1 << 20, 2048, true);
    let step = |address, from, to| frames.step(address, from, to);
    let (one, other) = (100, 1100);
    assert_eq!(step(one, State::Client, State::Receiving), Ok(()));
    assert_eq!(step(other, State::Client, State::Receiving), Ok(()));
    // The kernel adds the packet's offset.
    assert_eq!(step(one | 256 << 48, State::Receiving, State::Judging), Ok(()));
    assert_eq!(step(one | 256 << 48, State::Receiving, State::Client), Err(WrongState));
    assert_eq!((frames.count(State::Receiving), frames.count(State::Judging)), (1, 1));
    assert_eq!(step(1 << 20, State::Client, State::Receiving), Err(WrongState));
}

#[test]
fn a_frame_that_two_threads_claim_goes_to_one() {
    const ALL: u64 = 1 << 16;
    let frames = Frames::new(ALL * 64, 64, false);
    let claimed = |to: State| {
        (0..ALL).filter(|frame| frames.step(frame * 64, State::Client, to).is_ok()).count()
    };
    let (one, other) = std::thread::scope(|scope| {
        let one = scope.spawn(|| claimed(State::Receiving));
        let other = scope.spawn(|| claimed(State::Transmitting));
        (one.join().unwrap(), other.join().unwrap())
    });
    assert_eq!(one + other, ALL as usize);
    assert_eq!(frames.count(State::Receiving), one);
}
