//! The store in a single file.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use redb::{
    Database, DatabaseError, ReadableDatabase, ReadableTable, StorageError, Table, TableDefinition,
    TableError,
};

use crate::{Error, Record, Store};

/// Name -> record as JSON, which is readable for people and extensible by later versions.
const RECORDS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("applications");

type Records<'t> = Table<'t, &'static str, &'static [u8]>;

/// A store in a single file.
pub struct Embedded {
    path: PathBuf,
    /// None after a disk error: redb then refuses all operations until the file is reopened.
    database: Option<Database>,
}

/// An opened store, and the state in which the file was found.
pub struct Opened {
    /// The store.
    pub store: Embedded,
    /// The path to which a damaged file was moved; the store is then new and empty.
    pub set_aside: Option<PathBuf>,
    /// True if there was no file.
    pub created: bool,
}

impl Embedded {
    /// Opens the file at `path`, or creates it. A damaged file is renamed to
    /// `PATH.damaged-SECONDS`, never deleted, and replaced by a new one, which is rebuilt from the
    /// nodes.
    pub fn open(path: &Path) -> Result<Opened, Error> {
        // A controller that was killed while starting leaves an empty file.
        let created = std::fs::metadata(path).map_or(true, |found| found.len() == 0);
        // redb trusts the file's contents, and some damage makes it panic.
        let opened = std::panic::catch_unwind(|| Self::open_sound(path));
        let Ok(opened) = opened else { return Self::start_over(path) };
        match opened {
            Ok(store) => Ok(Opened { store, set_aside: None, created }),
            Err(Error::Open { source, .. }) if is_damage(&source) => Self::start_over(path),
            Err(Error::Damaged { .. } | Error::Failed { .. }) => Self::start_over(path),
            Err(error) => Err(error),
        }
    }

    fn open_sound(path: &Path) -> Result<Self, Error> {
        let store = Self { path: path.into(), database: Some(database(path)?) };
        store.records()?;
        Ok(store)
    }

    /// Changes the table in one transaction.
    fn change(
        &mut self,
        doing: &'static str,
        change: impl FnOnce(&mut Records<'_>) -> Result<(), StorageError>,
    ) -> Result<(), Error> {
        let database = match self.database.take() {
            Some(database) => database,
            None => database(&self.path)?,
        };
        let work = || {
            let transaction = database.begin_write().map_err(failed(doing))?;
            {
                let mut table = transaction.open_table(RECORDS).map_err(failed(doing))?;
                change(&mut table).map_err(failed(doing))?;
            }
            transaction.commit().map_err(failed(doing))
        };
        work()?;
        self.database = Some(database);
        Ok(())
    }

    fn start_over(path: &Path) -> Result<Opened, Error> {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let mut aside = path.as_os_str().to_owned();
        aside.push(format!(".damaged-{seconds}"));
        let aside = PathBuf::from(aside);
        std::fs::rename(path, &aside)
            .map_err(|source| Error::SetAside { path: path.display().to_string(), source })?;
        let store = Self::open_sound(path)?;
        Ok(Opened { store, set_aside: Some(aside), created: false })
    }
}

fn database(path: &Path) -> Result<Database, Error> {
    Database::create(path).map_err(|source| match source {
        DatabaseError::DatabaseAlreadyOpen => Error::InUse(path.display().to_string()),
        source => Error::Open { path: path.display().to_string(), source: Box::new(source) },
    })
}

/// Returns true if the file itself is damaged, as opposed to a disk or permission error.
fn is_damage(error: &DatabaseError) -> bool {
    match error {
        DatabaseError::Storage(StorageError::Corrupted(_)) => true,
        DatabaseError::Storage(StorageError::Io(error)) => {
            // redb's error for a foreign or truncated file.
            matches!(
                error.kind(),
                std::io::ErrorKind::InvalidData | std::io::ErrorKind::UnexpectedEof
            )
        }
        DatabaseError::UpgradeRequired(_) | DatabaseError::RepairAborted => true,
        _ => false,
    }
}

fn failed<E: Into<redb::Error>>(doing: &'static str) -> impl FnOnce(E) -> Error {
    move |source| Error::Failed { doing, source: Box::new(source.into()) }
}

impl Store for Embedded {
    fn records(&self) -> Result<Vec<Record>, Error> {
        const DOING: &str = "reading";
        let reopened;
        let database = match &self.database {
            Some(database) => database,
            None => {
                reopened = database(&self.path)?;
                &reopened
            }
        };
        let transaction = database.begin_read().map_err(failed(DOING))?;
        let table = match transaction.open_table(RECORDS) {
            Ok(table) => table,
            Err(TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
            Err(error) => return Err(failed(DOING)(error)),
        };
        let mut records = Vec::new();
        for entry in table.iter().map_err(failed(DOING))? {
            let (name, json) = entry.map_err(failed(DOING))?;
            let record = serde_json::from_slice(json.value())
                .map_err(|source| Error::Damaged { name: name.value().into(), source })?;
            records.push(record);
        }
        Ok(records)
    }

    fn put(&mut self, record: &Record) -> Result<(), Error> {
        let json = serde_json::to_vec(record).expect("a record has no map with odd keys");
        let name = record.application.name.as_str();
        self.change("writing", |table| table.insert(name, json.as_slice()).map(drop))
    }

    fn remove(&mut self, name: &str) -> Result<(), Error> {
        self.change("removing", |table| table.remove(name).map(drop))
    }
}

#[cfg(test)]
mod tests {
    use model::{Color, Destination};

    use super::*;

    fn record(name: &str) -> Record {
        let application = model::Application {
            name: name.into(),
            from: "h3".into(),
            to: Destination::Node("h2".into()),
            protocol: None,
            src_ports: None,
            dst_ports: None,
            dscp: None,
            demand: Some("50mbit".parse().unwrap()),
            class: Default::default(),
            functions: Vec::new(),
        };
        Record::new(application, Color(7000))
    }

    #[test]
    fn records_survive_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store");
        let mut opened = Embedded::open(&path).unwrap();
        opened.store.put(&record("a")).unwrap();
        opened.store.put(&record("b")).unwrap();
        opened.store.remove("a").unwrap();
        opened.store.remove("never there").unwrap();
        assert!(matches!(Embedded::open(&path), Err(Error::InUse(_))));
        drop(opened);
        let opened = Embedded::open(&path).unwrap();
        assert_eq!(opened.store.records().unwrap(), [record("b")]);
        assert_eq!((opened.set_aside, opened.created), (None, false));
    }

    #[test]
    fn a_damaged_file_is_set_aside_and_kept() {
        let whole = {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("store");
            Embedded::open(&path).unwrap().store.put(&record("a")).unwrap();
            std::fs::read(path).unwrap()
        };
        let mut scribbled = whole.clone();
        for byte in scribbled.iter_mut().step_by(97) {
            *byte ^= 0xff;
        }
        let cut = whole[..whole.len() / 2].to_vec();
        for bytes in [b"no database at all".to_vec(), scribbled, cut] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("store");
            std::fs::write(&path, &bytes).unwrap();
            let mut opened = Embedded::open(&path).unwrap();
            let aside = opened.set_aside.expect("the damage was noticed");
            assert_eq!(std::fs::read(aside).unwrap().len(), bytes.len());
            opened.store.put(&record("b")).unwrap();
            assert_eq!(opened.store.records().unwrap(), [record("b")]);
        }
    }

    /// Runs `test` in a thread with a private mount namespace, with a small tmpfs.
    fn on_a_small_disk(test: impl FnOnce(&Path) + Send) {
        use nix::mount::{MsFlags, mount};
        use nix::sched::{CloneFlags, unshare};
        let directory = tempfile::tempdir().unwrap();
        let none: Option<&str> = None;
        std::thread::scope(|scope| {
            let work = || {
                unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_FS).expect("the test is root");
                mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).unwrap();
                let (kind, size) = (Some("tmpfs"), Some("size=8m"));
                mount(kind, directory.path(), kind, MsFlags::empty(), size).unwrap();
                test(directory.path());
            };
            scope.spawn(work).join().unwrap();
        });
    }

    #[test]
    fn root_a_disk_that_was_full_for_a_while_is_used_again() {
        on_a_small_disk(|directory| {
            let path = directory.join("store");
            let mut store = Embedded::open(&path).unwrap().store;
            store.put(&record("a")).unwrap();
            let filler = directory.join("filler");
            // Fails when the disk is full, as intended.
            let _ = std::fs::write(&filler, vec![1; 16 << 20]);
            let long = model::Application { from: "x".repeat(1 << 20), ..record("b").application };
            let long = Record { application: long, ..record("b") };
            assert!(matches!(store.put(&long), Err(Error::Failed { doing: "writing", .. })));
            assert!(store.put(&long).is_err());
            std::fs::remove_file(&filler).unwrap();
            store.put(&record("c")).unwrap();
            store.remove("a").unwrap();
            assert_eq!(store.records().unwrap(), [record("c")]);
            drop(store);
            let opened = Embedded::open(&path).unwrap();
            assert_eq!(opened.store.records().unwrap(), [record("c")]);
            assert_eq!(opened.set_aside, None);
        });
    }

    #[test]
    fn no_damage_is_taken_for_records() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store");
        let mut store = Embedded::open(&path).unwrap().store;
        store.put(&record("a")).unwrap();
        store.put(&record("b")).unwrap();
        drop(store);
        let whole = std::fs::read(&path).unwrap();
        // Every third byte of the headers, and samples from the pages after them.
        let places = (0..512).step_by(3).chain((512..whole.len().min(100_000)).step_by(1009));
        for at in places {
            let mut bytes = whole.clone();
            bytes[at] ^= 0xff;
            std::fs::write(&path, &bytes).unwrap();
            let records = Embedded::open(&path).unwrap().store.records().unwrap();
            assert!(records.iter().all(|found| *found == record(&found.application.name)));
            for file in std::fs::read_dir(directory.path()).unwrap() {
                std::fs::remove_file(file.unwrap().path()).unwrap();
            }
        }
    }
}
