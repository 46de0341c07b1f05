//! A writer and a reader of one file, and attacks by a malicious writer.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use tempfile::TempDir;
use vminfo::layout::{ENTRY, HEADER, MAX_KEYS, SIZE, header};
use vminfo::{Bad, Key, ReadError, Reader, Unit, WriteError, Writer};

struct Bed {
    _directory: TempDir,
    path: PathBuf,
}

fn bed() -> Bed {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("vm");
    Bed { _directory: directory, path }
}

fn key(name: &str) -> Key {
    Key::new(name, Unit::PerMille, Duration::from_millis(300)).expect("a name")
}

impl Bed {
    fn writer(&self, names: &[&str]) -> Writer {
        let mut writer = Writer::create(&self.path).expect("nobody else writes");
        for name in names {
            writer.add(key(name)).expect("there is room");
        }
        writer.beat().expect("the file is whole");
        writer
    }

    fn reader(&self) -> Reader {
        Reader::new(&self.path)
    }

    fn file(&self) -> File {
        OpenOptions::new().read(true).write(true).open(&self.path).expect("a file")
    }
}

#[test]
fn published_values_are_read() {
    let bed = bed();
    let mut writer = bed.writer(&["net.utilisation", "app.queue"]);
    writer.set_value(0, 312);
    let mut reader = bed.reader();
    let before = reader.read().unwrap();
    assert_eq!(before.entries[0].value, None, "nobody has said so yet");
    writer.beat().unwrap();
    let said = reader.read().unwrap();
    assert_eq!((said.generation, said.ended), (before.generation, false));
    assert_eq!(said.beat, before.beat + 1);
    let one = &said.entries[0];
    assert_eq!((&*one.name, one.unit, one.value), ("net.utilisation", Unit::PerMille, Some(312)));
    assert_eq!(one.valid, Duration::from_millis(300));
    assert!(one.at_ns <= said.now_ns && said.now_ns <= vminfo::now_ns());
    assert_eq!((&*said.entries[1].name, said.entries[1].value), ("app.queue", None));
    // An additional key changes the generation.
    writer.add(key("late")).unwrap();
    writer.beat().unwrap();
    let later = reader.read().unwrap();
    assert_ne!(later.generation, said.generation);
    assert_eq!(later.entries.len(), 3);
    drop(writer);
    assert!(reader.read().unwrap().ended);
}

#[test]
fn there_is_one_writer_and_each_key_once() {
    let bed = bed();
    let mut writer = bed.writer(&["a"]);
    assert!(matches!(Writer::create(&bed.path), Err(WriteError::Busy(_))));
    assert!(matches!(writer.add(key("a")), Err(WriteError::Duplicate(_))));
    for at in 1..MAX_KEYS {
        writer.add(key(&format!("k{at}"))).unwrap();
    }
    assert!(matches!(writer.add(key("more")), Err(WriteError::Full(_))));
    writer.beat().unwrap();
    assert_eq!(bed.reader().read().unwrap().entries.len(), MAX_KEYS);
    drop(writer);
    // A writer takes over from one that ended, and from one that died during a write.
    bed.file().write_all_at(&7_u64.to_le_bytes(), header::SEQUENCE as u64).unwrap();
    let again = bed.writer(&["b"]);
    let said = bed.reader().read().unwrap();
    assert_eq!((said.entries.len(), &*said.entries[0].name), (1, "b"));
    drop(again);
}

#[test]
fn a_writer_follows_no_symbolic_link() {
    let bed = bed();
    let victim = bed.path.with_extension("victim");
    std::fs::write(&victim, []).unwrap();
    std::os::unix::fs::symlink(&victim, &bed.path).unwrap();
    assert!(matches!(Writer::create(&bed.path), Err(WriteError::Link(_))));
    assert_eq!(std::fs::metadata(&victim).unwrap().len(), 0);
}

#[test]
fn an_invalid_publication_is_refused() {
    let bed = bed();
    let mut reader = bed.reader();
    assert!(matches!(reader.read(), Err(ReadError::File(_))), "it is not there");
    let writer = bed.writer(&["a", "b"]);
    let good = std::fs::read(&bed.path).unwrap();
    let of = |reader: &mut Reader, bytes: &[u8]| {
        std::fs::write(&bed.path, bytes).unwrap();
        match reader.read() {
            Err(ReadError::Bad(why)) => why,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(of(&mut reader, &[]), Bad::Nothing);
    assert_eq!(of(&mut reader, &[0; 1 << 20]), Bad::Nothing, "a device whose VM has not begun");
    assert_eq!(of(&mut reader, &good[..7]), Bad::Short { found: 7, wanted: HEADER });
    let wanted = HEADER + 2 * ENTRY;
    let cut = &good[..wanted - 1];
    assert_eq!(of(&mut reader, cut), Bad::Short { found: wanted - 1, wanted });
    let with = |at: usize, bytes: &[u8]| {
        let mut all = good.clone();
        all[at..at + bytes.len()].copy_from_slice(bytes);
        all
    };
    assert_eq!(of(&mut reader, &with(0, b"k")), Bad::Magic);
    assert_eq!(of(&mut reader, &with(header::VERSION, &[2])), Bad::Version(2));
    assert_eq!(of(&mut reader, &with(header::KEYS, &[1, 1])), Bad::Keys(257));
    assert_eq!(of(&mut reader, &with(header::KEYS, &[0xff; 4])), Bad::Keys(u32::MAX));
    assert_eq!(of(&mut reader, &with(header::STATE, &[9])), Bad::State(9));
    assert_eq!(of(&mut reader, &with(HEADER, b"\0")), Bad::Name(0));
    assert_eq!(of(&mut reader, &with(HEADER, &[b'x'; 64])), Bad::Name(0));
    assert_eq!(of(&mut reader, &with(HEADER + ENTRY, b"a\0")), Bad::Name(1), "there twice");
    std::fs::write(&bed.path, &good).unwrap();
    assert!(reader.read().is_ok());
    drop(writer);
}

#[test]
fn a_writer_that_dies_in_the_middle_is_not_waited_for() {
    let bed = bed();
    let writer = bed.writer(&["a"]);
    // State left behind by a writer killed during a write.
    let odd = u64::from_le_bytes([3, 0, 0, 0, 0, 0, 0, 0]);
    bed.file().write_all_at(&odd.to_le_bytes(), header::SEQUENCE as u64).unwrap();
    let begin = Instant::now();
    assert!(matches!(bed.reader().read(), Err(ReadError::Torn)));
    assert!(begin.elapsed() < Duration::from_secs(1));
    drop(writer);
}

#[test]
fn readings_are_consistent_under_fast_writes() {
    let bed = bed();
    let names: Vec<String> = (0..MAX_KEYS).map(|at| format!("k{at}")).collect();
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    let mut writer = bed.writer(&names);
    let mut reader = bed.reader();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0;
            while !done.load(Ordering::Relaxed) {
                number += 1;
                (0..MAX_KEYS).for_each(|place| writer.set_value(place, number));
                writer.beat().unwrap();
            }
        });
        let (mut whole, mut torn, mut last) = (0, 0, 0);
        while whole < 200 && torn < 100_000 {
            match reader.read() {
                Ok(said) => {
                    let first = said.entries[0].value;
                    assert!(said.entries.iter().all(|entry| entry.value == first), "{said:?}");
                    assert!(first.unwrap_or(0) >= last, "time goes on");
                    (whole, last) = (whole + 1, first.unwrap_or(0));
                }
                Err(ReadError::Torn) => torn += 1,
                Err(why) => panic!("{why}"),
            }
        }
        done.store(true, Ordering::Relaxed);
        assert!(whole > 0, "{torn} reads, and none between two writes");
    });
}

/// A reader gives up after a number of attempts during incessant writes; the next read succeeds.
#[test]
fn a_reader_gives_up_on_incessant_writes() {
    let bed = bed();
    let writer = bed.writer(&["a"]);
    let (done, file) = (AtomicBool::new(false), bed.file());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut sequence = 0_u64;
            while !done.load(Ordering::Relaxed) {
                sequence += 2;
                file.write_all_at(&sequence.to_le_bytes(), header::SEQUENCE as u64).unwrap();
            }
        });
        let (mut reader, begin) = (bed.reader(), Instant::now());
        let (mut torn, mut reads) = (0, 0);
        while torn == 0 {
            reads += 1;
            match reader.read() {
                Ok(said) => assert_eq!(said.entries.len(), 1),
                Err(ReadError::Torn) => torn += 1,
                Err(why) => panic!("{why}"),
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "{reads} reads, none torn");
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(bed.reader().read().is_ok());
    drop(writer);
}

#[test]
fn a_truncated_file_kills_no_reader() {
    let bed = bed();
    let writer = bed.writer(&["a", "b", "c"]);
    let good = std::fs::read(&bed.path).unwrap();
    drop(writer);
    let mut reader = bed.reader();
    let (done, file) = (AtomicBool::new(false), bed.file());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                for length in [0, 20, 5000, SIZE as u64] {
                    file.set_len(length).unwrap();
                    file.write_all_at(&good[..(length as usize).min(HEADER + ENTRY)], 0).unwrap();
                }
            }
        });
        for _ in 0..5000 {
            match reader.read() {
                Ok(said) => assert!(said.entries.len() <= 3),
                Err(ReadError::Bad(_) | ReadError::Torn) => {}
                Err(why) => panic!("{why}"),
            }
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_file_that_is_cut_while_it_is_written_kills_no_writer() {
    let bed = bed();
    let mut writer = bed.writer(&["a", "b", "c"]);
    let (done, file) = (AtomicBool::new(false), bed.file());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                for length in [0, 20, SIZE as u64] {
                    file.set_len(length).unwrap();
                }
            }
        });
        let (mut written, mut cut) = (0, 0);
        while written < 2000 || cut < 2000 {
            match writer.beat() {
                Ok(()) => written += 1,
                Err(WriteError::Truncated(_)) => cut += 1,
                Err(why) => panic!("{why}"),
            }
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_special_file_does_not_block_the_reader() {
    let bed = bed();
    nix::unistd::mkfifo(&bed.path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(matches!(bed.reader().read(), Err(ReadError::File(_))));
    assert!(matches!(Writer::create(&bed.path), Err(WriteError::File { .. })));
    let directory = bed.path.parent().unwrap();
    assert!(matches!(Reader::new(directory).read(), Err(ReadError::File(_))));
    assert!(matches!(Reader::new("/dev/zero".as_ref()).read(), Err(ReadError::File(_))));
}

/// Opening a device can have effects, such as starting a watchdog.
#[test]
fn a_special_file_is_not_opened() {
    use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
    let bed = bed();
    nix::unistd::mkfifo(&bed.path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let watch = Inotify::init(InitFlags::IN_NONBLOCK).unwrap();
    watch.add_watch(&bed.path, AddWatchFlags::IN_OPEN).unwrap();
    assert!(bed.reader().read().is_err());
    assert_eq!(watch.read_events().map(drop), Err(nix::errno::Errno::EAGAIN));
}

#[test]
fn another_file_is_not_overwritten() {
    let bed = bed();
    std::fs::write(&bed.path, "notes").unwrap();
    assert!(matches!(Writer::create(&bed.path), Err(WriteError::Foreign(_))));
    assert_eq!(std::fs::read(&bed.path).unwrap(), b"notes");
    std::fs::write(&bed.path, "").unwrap();
    bed.writer(&[]);
    // An existing publication is overwritten, also one of another version.
    bed.writer(&[]);
}

#[test]
fn a_writer_gets_an_error_if_the_file_is_truncated() {
    let bed = bed();
    let mut writer = bed.writer(&["a"]);
    bed.file().set_len(0).unwrap();
    assert!(matches!(writer.beat(), Err(WriteError::Truncated(_))));
    drop(writer);
    assert_eq!(bed.file().metadata().unwrap().len(), 0);
}

proptest! {
    #[test]
    fn no_bytes_are_too_strange(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..HEADER + 3 * ENTRY),
        looks_right in any::<bool>(),
        keys in 0..5_u8,
    ) {
        if looks_right && bytes.len() >= HEADER {
            bytes[..8].copy_from_slice(b"KAIDO-VM");
            bytes[8..16].copy_from_slice(&[1, 0, 0, 0, keys, 0, 0, 0]);
            bytes[header::STATE..][..4].copy_from_slice(&[1, 0, 0, 0]);
        }
        if let Ok(said) = vminfo::parse(&bytes) {
            prop_assert!(said.entries.len() <= 3);
            let mut ages = vminfo::Ages::default();
            ages.hear(&said, 5);
            for entry in &said.entries {
                prop_assert!(vminfo::is_name(&entry.name));
                ages.of(&said, &entry.name);
            }
        }
    }
}

/// Another user creates the file before the VM or the publisher does, or leads it elsewhere.
#[test]
fn root_a_file_that_another_user_planted_is_not_used() {
    use std::os::unix::fs::{PermissionsExt as _, lchown};
    let bed = bed();
    drop(bed.writer(&["a"]));
    let set = |mode, owner| {
        let directory = bed.path.parent().unwrap();
        std::fs::set_permissions(directory, std::fs::Permissions::from_mode(mode)).unwrap();
        lchown(&bed.path, Some(owner), None).unwrap();
    };
    // The directory of a VM's files is writable by root alone.
    set(0o755, 65534);
    bed.reader().read().unwrap();
    drop(bed.writer(&["a"]));
    for mode in [0o777, 0o1777, 0o775] {
        set(mode, 65534);
        let why = bed.reader().read().unwrap_err().to_string();
        assert!(why.contains("it is user 65534's, in a directory that others may write"), "{why}");
        let before = std::fs::read(&bed.path).unwrap();
        assert!(matches!(Writer::create(&bed.path), Err(WriteError::File { .. })), "{mode:o}");
        assert_eq!(std::fs::read(&bed.path).unwrap(), before, "nothing is written");
        set(mode, 0);
        bed.reader().read().unwrap();
    }
    let link = bed.path.with_extension("link");
    std::os::unix::fs::symlink(&bed.path, &link).unwrap();
    set(0o755, 0);
    Reader::new(&link).read().unwrap();
    lchown(&link, Some(65534), None).unwrap();
    let why = Reader::new(&link).read().unwrap_err().to_string();
    assert!(why.contains("is a symbolic link of another user"), "{why}");
}
