//! What kind of work a stack is, by rules over the names of its frames.
//!
//! A thread that has one task alone decides by its name: those of garbage collectors and
//! compilers. Otherwise the innermost frame counts that a rule knows, so that a copy within a
//! checksum within a handler is a copy, and what no rule knows (an iterator, a smart pointer) is
//! what called it. Rules are tried in their order, the special before the general.

use Match::{Contains, Starts};

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// Sockets and the network stack.
    Network,
    /// Files and block devices.
    Disk,
    /// TLS records and handshakes.
    Tls,
    /// Ciphers and hashes.
    Crypto,
    /// CRC32C and other checksums.
    Checksum,
    /// Codecs.
    Compression,
    /// Copies of memory.
    Copy,
    /// Allocation and release of memory.
    Allocation,
    /// Reading and writing of Kafka messages.
    Protocol,
    /// The program itself.
    Logic,
    /// Garbage collection.
    Collection,
    /// Compilation while the program runs.
    Compilation,
    /// Waiting, waking and switching of threads.
    Scheduling,
    /// Everything that no rule names.
    Other,
}

/// In the order of tables.
pub const SHOWN: [Category; 14] = [
    Category::Network,
    Category::Disk,
    Category::Tls,
    Category::Crypto,
    Category::Checksum,
    Category::Compression,
    Category::Copy,
    Category::Allocation,
    Category::Protocol,
    Category::Logic,
    Category::Collection,
    Category::Compilation,
    Category::Scheduling,
    Category::Other,
];

impl Category {
    /// The category of a stack, from the outermost frame in, the thread first.
    pub fn of(frames: &[&str]) -> Self {
        let known = |rules: &[Rule], name: &str| {
            // The C library calls itself by names that begin so.
            let name = name.trim_start_matches("__GI_");
            rules.iter().find(|rule| rule.1.is_met(name, rule.2)).map(|rule| rule.0)
        };
        let thread = frames.first().and_then(|thread| known(&THREADS, thread));
        let frame = || frames.iter().rev().find_map(|frame| known(&FRAMES, frame));
        thread.or_else(frame).unwrap_or(Self::Other)
    }

    /// Name in tables.
    pub fn label(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Disk => "disk",
            Self::Tls => "TLS",
            Self::Crypto => "cryptography",
            Self::Checksum => "checksums",
            Self::Compression => "compression",
            Self::Copy => "copying memory",
            Self::Allocation => "allocation",
            Self::Protocol => "protocol",
            Self::Logic => "rest of the product",
            Self::Collection => "garbage collection",
            Self::Compilation => "JIT compilation",
            Self::Scheduling => "waiting and scheduling",
            Self::Other => "other",
        }
    }
}

/// How a name meets a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
    Starts,
    Contains,
}

impl Match {
    fn is_met(self, name: &str, patterns: &[&str]) -> bool {
        patterns.iter().any(|pattern| match self {
            Starts => name.starts_with(pattern),
            Contains => name.contains(pattern),
        })
    }
}

pub(super) type Rule = (Category, Match, &'static [&'static str]);

/// Threads of a Java machine with one task.
pub(super) const THREADS: [Rule; 2] = [
    (
        Category::Collection,
        Starts,
        &["GC Thread", "G1 ", "ZWorker", "ZDriver", "ZDirector", "Shenandoah", "Concurrent Mark"],
    ),
    (Category::Compilation, Starts, &["C1 CompilerThre", "C2 CompilerThre", "Sweeper thread"]),
];

/// Frames of Rust, C, the kernel and Java.
pub(super) const FRAMES: [Rule; 25] = [
    (Category::Checksum, Contains, &["crc_fast::", "crc32", "CRC32", "Crc32"]),
    (
        Category::Compression,
        Contains,
        &["zstd_safe::", "lz4_flex::", "snap::", "zlib_rs::", "flate2::", "moldau_records::comp"],
    ),
    (Category::Compression, Starts, &["ZSTD_", "HUF_", "FSE_", "LZ4_", "inflate", "deflate"]),
    (
        Category::Compression,
        Contains,
        &["net/jpountz/", "com/github/luben/zstd", "org/xerial/snappy", "java/util/zip/"],
    ),
    (Category::Crypto, Contains, &["aws_lc_", "ring_core_", "ring::", "moldau_encryption::cipher"]),
    (
        Category::Crypto,
        Starts,
        &["aes_", "aesni_", "gcm_", "ghash", "sha256_", "sha512_", "x25519"],
    ),
    (
        Category::Crypto,
        Contains,
        &[
            "com/sun/crypto/",
            "javax/crypto/",
            "sun/security/provider/",
            "sun/security/ec/",
            "sun/security/util/math",
            "galoisCounterMode",
            "ounterMode_AESCrypt",
            "ghash_process",
        ],
    ),
    (Category::Tls, Contains, &["rustls::", "tokio_rustls", "moldau_net::tls"]),
    (
        Category::Tls,
        Contains,
        &["sun/security/ssl/", "javax/net/ssl/", "netty/handler/ssl", "SslTransportLayer"],
    ),
    (
        Category::Copy,
        Starts,
        &["__mem", "mem", "copy_user", "_copy_to_iter", "_copy_from_iter", "rep_movs", "Copy::"],
    ),
    (Category::Copy, Contains, &["arraycopy", "Unsafe.copyMemory", "Unsafe.setMemory"]),
    (
        Category::Allocation,
        Starts,
        &[
            "malloc",
            "_int_malloc",
            "_int_free",
            "free",
            "cfree",
            "calloc",
            "realloc",
            "_int_realloc",
            "__libc_malloc",
            "__libc_free",
            "__libc_calloc",
            "__libc_realloc",
            "unlink_chunk",
            "tcache_",
            "sysmalloc",
            "systrim",
            "__rust_",
            "__rdl_",
            "__munmap",
            "__mmap",
            "__madvise",
            "clear_page",
            "asm_exc_page_fault",
            "do_anonymous_page",
        ],
    ),
    (
        Category::Allocation,
        Contains,
        &["MemAllocator::", "OptoRuntime::new_", "io/netty/buffer/Pool", "io/netty/util/Recycler"],
    ),
    (
        Category::Network,
        Starts,
        &[
            "send",
            "__send",
            "__libc_send",
            "recv",
            "__recv",
            "__libc_recv",
            "writev",
            "__writev",
            "readv",
            "__readv",
            "__libc_readv",
            "__libc_writev",
            "accept",
            "__accept",
            "connect",
            "__connect",
            "__libc_connect",
            "__libc_accept",
            "shutdown",
            "close",
            "__close",
        ],
    ),
    (
        Category::Network,
        Starts,
        &[
            "tcp_",
            "ip_",
            "inet_",
            "sock_",
            "skb_",
            "__skb",
            "loopback_xmit",
            "net_rx",
            "nf_",
            "__netif",
            "__dev_queue_xmit",
            "__sys_send",
            "__sys_recv",
            "__x64_sys_send",
            "__x64_sys_recv",
        ],
    ),
    (
        Category::Network,
        Contains,
        &["sun/nio/ch/Socket", "sun/nio/ch/NioSocket", "netty/channel/unix"],
    ),
    (
        Category::Disk,
        Starts,
        &[
            "pwrite",
            "__pwrite",
            "__libc_pwrite",
            "pread",
            "__pread",
            "__libc_pread",
            "fdatasync",
            "fsync",
            "__fsync",
            "fallocate",
            "ext4_",
            "xfs_",
            "blk_",
            "virtblk",
            "jbd2_",
            "__libc_fsync",
            "io_uring",
            "__x64_sys_pwrite",
            "__x64_sys_pread",
            "__x64_sys_fdatasync",
        ],
    ),
    (
        Category::Disk,
        Contains,
        &[
            "moldau_storage::io",
            "rustix::",
            "sun/nio/ch/FileChannelImpl",
            "java/io/RandomAccessFile",
        ],
    ),
    (
        Category::Scheduling,
        Starts,
        &[
            "epoll_",
            "__epoll",
            "futex",
            "__futex",
            "syscall",
            "pthread_cond",
            "__pthread_cond",
            "pthread_mutex",
            "__pthread_mutex",
            "___pthread",
            "__lll_",
            "clock_nanosleep",
            "__clock_nanosleep",
            "sched_yield",
            "__sched_yield",
            "poll",
            "__poll",
            "schedule",
            "__schedule",
            "do_epoll",
            "ep_",
            "finish_task_switch",
            "do_futex",
            "eventfd_",
        ],
    ),
    (
        Category::Scheduling,
        Contains,
        &[
            "Unsafe.park",
            "Unsafe_Park",
            "sun/nio/ch/EPoll",
            "sun/nio/ch/EventFD",
            "mio::",
            "std::thread::park",
        ],
    ),
    (
        Category::Collection,
        Contains,
        &["G1", "CollectedHeap::", "BarrierSet", "SafepointSynchronize"],
    ),
    (Category::Compilation, Contains, &["CompileBroker::", "C2Compiler::", "Deoptimization::"]),
    (
        Category::Protocol,
        Contains,
        &[
            "moldau_protocol::",
            "moldau_records::",
            "moldau_net::buffer",
            "moldau_proxy::walk",
            "org/apache/kafka/common/message/",
            "org/apache/kafka/common/protocol/",
            "org/apache/kafka/common/record/",
            "org/apache/kafka/common/requests/",
            "io/kroxylicious/proxy/internal/codec",
            "io/kroxylicious/proxy/frame",
            "io/netty/handler/codec",
        ],
    ),
    (
        Category::Logic,
        Contains,
        &["moldau", "kafka/", "org/apache/kafka/", "io/kroxylicious/", "io/netty/"],
    ),
    (Category::Scheduling, Contains, &["tokio::", "java/util/concurrent/"]),
];
