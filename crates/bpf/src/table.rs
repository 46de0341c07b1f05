//! Typed maps.

use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::ptr::NonNull;

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use nix::sys::mman::{MapFlags as Mapping, ProtFlags, mmap, munmap};

use crate::Error;
use crate::abi::{Abi, bytes_of, bytes_of_all, value_of};

/// Maximum number of entries per system call.
const BATCH: usize = 4096;

/// A map from keys to values.
#[derive(Debug)]
pub struct Table<K, V> {
    map: MapHandle,
    name: &'static str,
    types: PhantomData<fn(K) -> V>,
}

impl<K: Abi, V: Abi> Table<K, V> {
    /// Wraps the map `handle`. Its key and value must have the sizes of these types.
    pub(crate) fn new(name: &'static str, handle: MapHandle) -> Self {
        Self { map: handle, name, types: PhantomData }
    }

    fn failed(&self, doing: &'static str) -> impl Fn(libbpf_rs::Error) -> Error + use<K, V> {
        let map = self.name;
        move |source| Error::Map { map, doing, source }
    }

    /// Returns the capacity.
    pub fn capacity(&self) -> u32 {
        self.map.max_entries()
    }

    /// Returns the value of `key`.
    pub fn get(&self, key: &K) -> Result<Option<V>, Error> {
        let found = self.map.lookup(bytes_of(key), MapFlags::ANY).map_err(self.failed("read"))?;
        Ok(found.and_then(|bytes| value_of(&bytes)))
    }

    /// Sets the value of `key`, replacing an existing one. Packets see one or the other.
    pub fn set(&self, key: &K, value: &V) -> Result<(), Error> {
        let written = self.map.update(bytes_of(key), bytes_of(value), MapFlags::ANY);
        written.map_err(self.failed("write"))
    }

    /// Performs [`Table::set`] for many keys with few system calls. On an error, some of them are
    /// set.
    pub fn set_all(&self, keys: &[K], values: &[V]) -> Result<(), Error> {
        for (keys, values) in keys.chunks(BATCH).zip(values.chunks(BATCH)) {
            let (count, any) = (keys.len() as u32, MapFlags::ANY);
            let (keys, values) = (bytes_of_all(keys), bytes_of_all(values));
            let written = self.map.update_batch(keys, values, count, any, any);
            written.map_err(self.failed("write"))?;
        }
        Ok(())
    }

    /// Removes `key`. A missing key is not an error.
    pub fn remove(&self, key: &K) -> Result<(), Error> {
        match self.map.delete(bytes_of(key)) {
            Err(error) if error.kind() != libbpf_rs::ErrorKind::NotFound => {
                Err(self.failed("write")(error))
            }
            _ => Ok(()),
        }
    }

    /// Returns all keys.
    pub fn keys(&self) -> Vec<K> {
        self.map.keys().filter_map(|bytes| value_of(&bytes)).collect()
    }
}

/// An array mapped into this process: reads and writes need no system call.
#[derive(Debug)]
pub struct Mapped<V> {
    start: NonNull<u8>,
    entries: usize,
    /// Bytes from one value to the next: the kernel rounds the size up to a multiple of 8.
    stride: usize,
    value: PhantomData<V>,
}

// SAFETY: the memory is shared with the kernel and other processes anyway; every access is through
// volatile reads and writes of plain values, and `Mapped` owns the mapping.
unsafe impl<V: Abi> Send for Mapped<V> {}
// SAFETY: as above.
unsafe impl<V: Abi> Sync for Mapped<V> {}

impl<V: Abi> Mapped<V> {
    /// Maps an array that was created with BPF_F_MMAPABLE.
    pub(crate) fn new(name: &'static str, map: &MapHandle) -> Result<Self, Error> {
        let stride = size_of::<V>().next_multiple_of(8);
        let entries = map.max_entries() as usize;
        let size = NonZeroUsize::new(entries * stride).expect("no map is empty");
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses aliases nothing of ours.
        let start = unsafe { mmap(None, size, access, Mapping::MAP_SHARED, map.as_fd(), 0) };
        let start = start.map_err(|errno| Error::Map {
            map: name,
            doing: "share",
            source: std::io::Error::from(errno).into(),
        })?;
        Ok(Self { start: start.cast(), entries, stride, value: PhantomData })
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.entries
    }

    /// Returns false: no map is empty.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Returns a pointer to a value.
    ///
    /// # Panics
    ///
    /// If the index is out of bounds.
    pub fn at(&self, index: usize) -> *mut V {
        assert!(index < self.entries, "entry {index} of {}", self.entries);
        // SAFETY: the entry is within the mapping.
        unsafe { self.start.add(index * self.stride).cast().as_ptr() }
    }

    /// Returns the value at `index`. If it is written concurrently, the result may be partly old
    /// and partly new.
    pub fn read(&self, index: usize) -> V {
        // SAFETY: `at` returns a pointer into the mapping, aligned to 8 bytes, and the alignment of
        // an Abi type is at most that.
        unsafe { self.at(index).read_volatile() }
    }

    /// Writes the value at `index`. A concurrent reader may see it partly written: write only
    /// unreferenced values, or single words.
    pub fn write(&self, index: usize, value: V) {
        // SAFETY: as in `read`.
        unsafe { self.at(index).write_volatile(value) }
    }
}

impl<V> Drop for Mapped<V> {
    fn drop(&mut self) {
        // SAFETY: the mapping has the length that it was created with, and nothing refers to it any
        // more. The only error, an invalid address, cannot occur.
        let _ = unsafe { munmap(self.start.cast(), self.entries * self.stride) };
    }
}
