//! Typed maps.

use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::ptr::NonNull;

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use nix::sys::mman::{MapFlags as Mapping, ProtFlags, mmap, munmap};

use crate::Error;
use crate::abi::{Abi, bytes_of, bytes_of_all, value_of};

/// How many entries one system call carries.
const BATCH: usize = 4096;

/// A map from keys to values.
#[derive(Debug)]
pub struct Table<K, V> {
    map: MapHandle,
    name: &'static str,
    types: PhantomData<fn(K) -> V>,
}

impl<K: Abi, V: Abi> Table<K, V> {
    /// The map behind `handle`, whose key and value have these types' sizes.
    pub(crate) fn new(name: &'static str, handle: MapHandle) -> Self {
        Self { map: handle, name, types: PhantomData }
    }

    fn failed(&self, doing: &'static str) -> impl Fn(libbpf_rs::Error) -> Error + use<K, V> {
        let map = self.name;
        move |source| Error::Map { map, doing, source }
    }

    /// The most entries that it holds.
    pub fn capacity(&self) -> u32 {
        self.map.max_entries()
    }

    /// The value of `key`.
    pub fn get(&self, key: &K) -> Result<Option<V>, Error> {
        let found = self.map.lookup(bytes_of(key), MapFlags::ANY).map_err(self.failed("read"))?;
        Ok(found.and_then(|bytes| value_of(&bytes)))
    }

    /// Gives `key` a value, in place of the one that it had: a packet meets the one or the other.
    pub fn set(&self, key: &K, value: &V) -> Result<(), Error> {
        let written = self.map.update(bytes_of(key), bytes_of(value), MapFlags::ANY);
        written.map_err(self.failed("write"))
    }

    /// [`Table::set`] for many, in few system calls. On an error some of them are set.
    pub fn set_all(&self, keys: &[K], values: &[V]) -> Result<(), Error> {
        for (keys, values) in keys.chunks(BATCH).zip(values.chunks(BATCH)) {
            let (count, any) = (keys.len() as u32, MapFlags::ANY);
            let (keys, values) = (bytes_of_all(keys), bytes_of_all(values));
            let written = self.map.update_batch(keys, values, count, any, any);
            written.map_err(self.failed("write"))?;
        }
        Ok(())
    }

    /// Takes `key` out. One that is not there is no error.
    pub fn remove(&self, key: &K) -> Result<(), Error> {
        match self.map.delete(bytes_of(key)) {
            Err(error) if error.kind() != libbpf_rs::ErrorKind::NotFound => {
                Err(self.failed("write")(error))
            }
            _ => Ok(()),
        }
    }

    /// All keys.
    pub fn keys(&self) -> Vec<K> {
        self.map.keys().filter_map(|bytes| value_of(&bytes)).collect()
    }
}

/// An array that is part of this process's memory: reading and writing need no system call.
#[derive(Debug)]
pub struct Mapped<V> {
    start: NonNull<u8>,
    entries: usize,
    /// Bytes from one value to the next: the kernel rounds them up to 8.
    stride: usize,
    value: PhantomData<V>,
}

// SAFETY: the memory is shared with the kernel and other processes anyway; every access is through
// volatile reads and writes of plain values, and `Mapped` owns the mapping.
unsafe impl<V: Abi> Send for Mapped<V> {}
// SAFETY: as above.
unsafe impl<V: Abi> Sync for Mapped<V> {}

impl<V: Abi> Mapped<V> {
    /// Maps an array that was made with BPF_F_MMAPABLE.
    pub(crate) fn new(name: &'static str, map: &MapHandle) -> Result<Self, Error> {
        let stride = size_of::<V>().next_multiple_of(8);
        let entries = map.max_entries() as usize;
        let size = NonZeroUsize::new(entries * stride).expect("no map is empty");
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice aliases nothing of ours.
        let start = unsafe { mmap(None, size, access, Mapping::MAP_SHARED, map.as_fd(), 0) };
        let start = start.map_err(|errno| Error::Map {
            map: name,
            doing: "share",
            source: std::io::Error::from(errno).into(),
        })?;
        Ok(Self { start: start.cast(), entries, stride, value: PhantomData })
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.entries
    }

    /// Whether there are none; never so.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Where a value is.
    ///
    /// # Panics
    ///
    /// If the array is shorter, as a slice does.
    pub fn at(&self, index: usize) -> *mut V {
        assert!(index < self.entries, "entry {index} of {}", self.entries);
        // SAFETY: the entry is within the mapping.
        unsafe { self.start.add(index * self.stride).cast().as_ptr() }
    }

    /// The value at `index`. One that is being written meanwhile may be half old, half new.
    pub fn read(&self, index: usize) -> V {
        // SAFETY: `at` gives a pointer into the mapping, aligned to 8 bytes, and an Abi type's
        // alignment is no more.
        unsafe { self.at(index).read_volatile() }
    }

    /// Writes the value at `index`. Who reads it meanwhile may see it half done: write what
    /// nothing leads to yet, or what is one word.
    pub fn write(&self, index: usize, value: V) {
        // SAFETY: as in `read`.
        unsafe { self.at(index).write_volatile(value) }
    }
}

impl<V> Drop for Mapped<V> {
    fn drop(&mut self) {
        // SAFETY: the mapping is as long as it was made and nothing refers to it any more. What
        // it fails for, a wrong address, cannot be.
        let _ = unsafe { munmap(self.start.cast(), self.entries * self.stride) };
    }
}
