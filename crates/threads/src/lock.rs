//! Locks of the standard library under one policy for panics.
//!
//! A panic under a lock stops the service, as [`Panic`](crate::Panic) tells the one who catches it.
//! Until then other threads may take the lock: those that wait for an answer get it, and
//! destructors run. What must not be used half changed, such as what will be acknowledged, is taken
//! with [`Mutex::lock_whole`].
//!
//! No lock is held across a system call that may wait for a disk, or all who want the lock would
//! wait for the disk. Debug builds assert it, see [`may_block`].

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::{self, PoisonError};
use std::thread;
use std::time::Duration;

use crate::panic::note_half_changed;

/// A lock for one thread at a time.
#[derive(Debug, Default)]
pub struct Mutex<T: ?Sized> {
    wait: Wait,
    inner: sync::Mutex<T>,
}

/// For what the holder of a lock may wait.
#[derive(Clone, Copy, Debug, Default)]
enum Wait {
    /// For no system call: those that want the lock have clients that wait.
    #[default]
    None,
    /// For a disk.
    Disk,
}

/// Another thread panicked while it held the lock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HalfChanged;

impl<T> Mutex<T> {
    /// A lock that guards `value`.
    pub const fn new(value: T) -> Self {
        Self { wait: Wait::None, inner: sync::Mutex::new(value) }
    }

    /// A lock whose holder may wait for a disk, which [`may_block`] allows.
    pub const fn held_across_io(value: T) -> Self {
        Self { wait: Wait::Disk, inner: sync::Mutex::new(value) }
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Takes the lock, also after a panic under it.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        MutexGuard { inner, _held: Held::begin(self.wait) }
    }

    /// Takes the lock, unless a thread panicked under it.
    ///
    /// # Errors
    /// [`HalfChanged`].
    pub fn lock_whole(&self) -> Result<MutexGuard<'_, T>, HalfChanged> {
        let guard = self.lock();
        if self.inner.is_poisoned() { Err(HalfChanged) } else { Ok(guard) }
    }

    /// Whether a thread panicked under the lock.
    pub fn is_half_changed(&self) -> bool {
        self.inner.is_poisoned()
    }
}

/// To be called before a system call that may wait for a disk.
///
/// # Panics
/// In debug builds, if this thread holds a lock that is not [`Mutex::held_across_io`].
#[inline]
pub fn may_block(call: &str) {
    if cfg!(debug_assertions) {
        let held = HELD.get();
        assert!(held == 0, "{call} waits for the disk under {held} locks");
    }
}

/// Holds a [`Mutex`] until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct MutexGuard<'a, T: ?Sized> {
    // The lock is released first.
    inner: sync::MutexGuard<'a, T>,
    _held: Held,
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

/// Wakes threads that wait with a [`MutexGuard`].
#[derive(Debug, Default)]
pub struct Condvar(sync::Condvar);

impl Condvar {
    /// A condition variable without waiters.
    #[must_use]
    pub const fn new() -> Self {
        Self(sync::Condvar::new())
    }

    /// Gives the lock back, waits to be woken, and takes the lock again.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        let MutexGuard { inner, _held } = guard;
        let inner = self.0.wait(inner).unwrap_or_else(PoisonError::into_inner);
        MutexGuard { inner, _held }
    }

    /// As [`Condvar::wait`] while `condition` holds, for no longer than `time`.
    pub fn wait_timeout_while<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        time: Duration,
        condition: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        let MutexGuard { inner, _held } = guard;
        let waited = self.0.wait_timeout_while(inner, time, condition);
        let (inner, _) = waited.unwrap_or_else(PoisonError::into_inner);
        MutexGuard { inner, _held }
    }

    /// Wakes one thread.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all threads.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// A lock for one writer or many readers.
#[derive(Debug, Default)]
pub struct RwLock<T: ?Sized>(sync::RwLock<T>);

impl<T> RwLock<T> {
    /// A lock that guards `value`.
    pub const fn new(value: T) -> Self {
        Self(sync::RwLock::new(value))
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Takes the lock to read, also after a panic under it.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        let inner = self.0.read().unwrap_or_else(PoisonError::into_inner);
        RwLockReadGuard { inner, _held: Held::begin(Wait::None) }
    }

    /// Takes the lock to change what it guards, also after a panic under it.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        let inner = self.0.write().unwrap_or_else(PoisonError::into_inner);
        RwLockWriteGuard { inner, _held: Held::begin(Wait::None) }
    }
}

/// Holds a [`RwLock`] to read until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct RwLockReadGuard<'a, T: ?Sized> {
    inner: sync::RwLockReadGuard<'a, T>,
    _held: Held,
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner
    }
}

/// Holds a [`RwLock`] to write until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    inner: sync::RwLockWriteGuard<'a, T>,
    _held: Held,
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

thread_local! {
    /// Locks under which this thread must not wait. Counted in debug builds.
    static HELD: Cell<usize> = const { Cell::new(0) };
}

/// A lock that this thread holds.
#[derive(Debug)]
struct Held {
    wait: Wait,
    /// Taken by a destructor that a panic runs.
    while_panicking: bool,
}

impl Held {
    fn begin(wait: Wait) -> Self {
        if cfg!(debug_assertions) && matches!(wait, Wait::None) {
            HELD.set(HELD.get() + 1);
        }
        Self { wait, while_panicking: thread::panicking() }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if cfg!(debug_assertions) && matches!(self.wait, Wait::None) {
            HELD.set(HELD.get() - 1);
        }
        if !self.while_panicking && thread::panicking() {
            note_half_changed();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::catch;

    #[test]
    fn a_lock_can_be_taken_after_a_panic_but_not_as_whole() {
        let mutex = Mutex::new(1);
        assert_eq!(*mutex.lock_whole().unwrap(), 1);
        let caught = catch(|| {
            *mutex.lock() = 2;
            let _guard = mutex.lock();
            panic!("under the lock");
        });
        assert!(caught.unwrap_err().has_left_half_changed());
        assert_eq!(*mutex.lock(), 2);
        assert_eq!(mutex.lock_whole().unwrap_err(), HalfChanged);
        assert!(mutex.is_half_changed());
    }

    #[test]
    #[cfg(debug_assertions)]
    fn a_thread_waits_for_the_disk_under_no_lock_but_those_that_are_for_it() {
        let (short, long) = (Mutex::new(()), Mutex::held_across_io(()));
        let _long = long.lock();
        may_block("a read");
        let held = short.lock();
        assert!(catch(|| may_block("a read")).is_err());
        drop(held);
        may_block("a read");
        let lock = RwLock::new(());
        let _read = lock.read();
        assert!(catch(|| may_block("a read")).is_err());
    }

    /// Destructors take locks, too, and leave them whole.
    #[test]
    fn a_destructor_that_a_panic_runs_leaves_its_lock_whole() {
        struct Counted<'a>(&'a Mutex<u32>);
        impl Drop for Counted<'_> {
            fn drop(&mut self) {
                *self.0.lock() += 1;
            }
        }
        let mutex = Mutex::new(0);
        let caught = catch(|| {
            let _counted = Counted(&mutex);
            panic!("without a lock");
        });
        assert!(!caught.unwrap_err().has_left_half_changed());
        assert_eq!(*mutex.lock_whole().unwrap(), 1);
    }

    #[test]
    fn a_panic_of_a_reader_or_a_writer_is_noted() {
        let lock = RwLock::new(1);
        let read = catch(|| {
            let _guard = lock.read();
            panic!("a reader");
        });
        let written = catch(|| {
            *lock.write() += 1;
            let _guard = lock.write();
            panic!("a writer");
        });
        assert!(read.unwrap_err().has_left_half_changed());
        assert!(written.unwrap_err().has_left_half_changed());
        assert_eq!(*lock.read(), 2);
    }

    #[test]
    fn a_waiting_thread_is_woken_with_the_lock() {
        let shared = Arc::new((Mutex::new(0), Condvar::new()));
        let waiting = Arc::clone(&shared);
        let waiter = thread::spawn(move || {
            let mut guard = waiting.0.lock();
            while *guard == 0 {
                guard = waiting.1.wait(guard);
            }
            *guard
        });
        *shared.0.lock() = 7;
        shared.1.notify_all();
        assert_eq!(waiter.join().unwrap(), 7);
        let guard = shared.1.wait_timeout_while(shared.0.lock(), Duration::ZERO, |it| *it == 7);
        assert_eq!(*guard, 7);
        drop(guard);
        shared.1.notify_one();
    }
}
