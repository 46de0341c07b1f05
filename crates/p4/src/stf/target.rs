//! Targets of tests: the interpreter, and others that execute a program.

use p4_object::cells::{Count, Rates};

use super::Said;
pub use crate::interpret::Cell;
use crate::interpret::tables::Entry;
use crate::interpret::{Machine, Outcome};
use crate::ir::{Elaborated, Value};

/// An executor of a program.
pub trait Runs {
    /// Returns the elaborated program.
    fn elaborated(&self) -> &Elaborated;

    /// Runs the program on a packet from an input port.
    ///
    /// # Errors
    ///
    /// If the run does not complete.
    fn run(&mut self, port: u32, packet: &[u8]) -> Result<Outcome, String>;

    /// Adds an entry to the table at this index.
    ///
    /// # Errors
    ///
    /// If the entry does not fit.
    fn add(&mut self, at: usize, entry: Entry) -> Result<(), String>;

    /// Sets the default action of the table at this index.
    ///
    /// # Errors
    ///
    /// If the default action cannot be set.
    fn set_default(
        &mut self,
        at: usize,
        action: usize,
        arguments: Vec<Value>,
    ) -> Result<(), String>;

    /// Publishes a value of the tenant's VM under a key; None withdraws it.
    ///
    /// # Errors
    ///
    /// If the value cannot be published.
    fn publish(&mut self, key: &str, said: Option<Said>) -> Result<(), String> {
        let _ = said;
        Err(format!("nothing here reads `{key}` of a VM"))
    }

    /// Returns the value of a counter cell. The counter is given by its object index.
    ///
    /// # Errors
    ///
    /// If the cell does not exist.
    fn count(&mut self, at: usize, cell: Cell<'_>) -> Result<Count, String>;

    /// Sets the rates of a meter cell. The meter is given by its object index.
    ///
    /// # Errors
    ///
    /// If the cell does not exist.
    fn set_meter(&mut self, at: usize, cell: Cell<'_>, rates: Rates) -> Result<(), String>;

    /// Advances the clock by this number of nanoseconds.
    fn wait(&mut self, time: u64);

    /// Takes the pending digests, oldest first: the object index, and the value in wire format.
    fn digests(&mut self) -> Vec<(usize, Vec<u8>)>;
}

impl Runs for Machine<'_> {
    fn elaborated(&self) -> &Elaborated {
        Machine::elaborated(self)
    }

    fn run(&mut self, port: u32, packet: &[u8]) -> Result<Outcome, String> {
        Machine::run(self, port, packet).map_err(|why| why.to_string())
    }

    fn add(&mut self, at: usize, entry: Entry) -> Result<(), String> {
        self.tables.add(at, entry);
        Ok(())
    }

    fn set_default(
        &mut self,
        at: usize,
        action: usize,
        arguments: Vec<Value>,
    ) -> Result<(), String> {
        self.tables.set_default(at, action, arguments);
        Ok(())
    }

    fn publish(&mut self, key: &str, said: Option<Said>) -> Result<(), String> {
        match said {
            Some(said) => self.vm.insert(key.to_owned(), said.at(self.now)),
            None => self.vm.remove(key),
        };
        Ok(())
    }

    fn count(&mut self, at: usize, cell: Cell<'_>) -> Result<Count, String> {
        Machine::count(self, at, cell).ok_or_else(no_cell)
    }

    fn set_meter(&mut self, at: usize, cell: Cell<'_>, rates: Rates) -> Result<(), String> {
        Machine::set_meter(self, at, cell, Some(rates)).ok_or_else(no_cell)
    }

    fn wait(&mut self, time: u64) {
        self.now = self.now.saturating_add(time);
    }

    fn digests(&mut self) -> Vec<(usize, Vec<u8>)> {
        std::mem::take(&mut self.digests)
    }
}

fn no_cell() -> String {
    "no such cell".to_owned()
}
