//! A program without the standard library, without an allocator and without libc, that limits. If the
//! crate or a dependency of it needed std, this would not link.
#![no_std]
#![no_main]

use core::arch::{asm, global_asm};
use core::panic::PanicInfo;
use core::time::Duration;

use ratekeeper::{
    All, Limiter, ManualClock, Monotonic, SliceLog, SlidingLog, SlidingWindow, Timestamp,
    TokenBucket,
};

static CLOCK: ManualClock = ManualClock::new();
static BUCKET: Limiter<TokenBucket, Monotonic<&ManualClock>> =
    Limiter::with_clock(TokenBucket::per_second(3), Monotonic::new(&CLOCK));
static WINDOW: Limiter<SlidingWindow> = Limiter::new(SlidingWindow::per_second(3));
static PAIR: Limiter<All<[TokenBucket; 2]>> =
    Limiter::new(All([TokenBucket::per_second(9), TokenBucket::per_hour(3)]));

/// Whether each limit lets exactly three of five pass.
fn limits() -> bool {
    let mut instants = [0; 3];
    let Ok(mut log) = SliceLog::new(SlidingLog::per_second(3), &mut instants) else { return false };
    let three = |ask: &mut dyn FnMut() -> bool| (0..5).filter(|_| ask()).count() == 3;
    let now = Timestamp::ZERO + Duration::from_secs(7);
    let parsed: Result<TokenBucket, _> = "3/s".parse();
    three(&mut || BUCKET.check().is_allowed())
        && three(&mut || WINDOW.check_at(now).is_allowed())
        && three(&mut || PAIR.check_at(now).is_allowed())
        && three(&mut || log.check_at(now).is_allowed())
        && parsed == Ok(TokenBucket::per_second(3))
}

// The kernel enters with an aligned stack, a function expects the one after a call.
global_asm!(".globl _start", "_start:", "call {entry}", entry = sym entry);

extern "C" fn entry() -> ! {
    exit(if limits() { 0 } else { 1 })
}

fn exit(code: i32) -> ! {
    // SAFETY: the x86-64 Linux system call `exit` (60) takes the code in rdi and does not return.
    unsafe { asm!("syscall", in("rax") 60, in("edi") code, options(noreturn)) }
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    exit(2)
}

// The compiler may call these; without libc somebody has to provide them.
macro_rules! by_byte {
    ($name:ident($dst:ident: *mut u8, $($arg:ident: $type:ty),+) -> $ret:ty $body:block) => {
        /// # Safety
        /// As in C.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($dst: *mut u8, $($arg: $type),+) -> $ret $body
    };
}
by_byte!(memset(dst: *mut u8, byte: i32, len: usize) -> *mut u8 {
    for i in 0..len {
        // SAFETY: the caller vouches for `len` bytes at `dst`. Volatile, or this becomes a memset.
        unsafe { dst.add(i).write_volatile(byte as u8) };
    }
    dst
});
by_byte!(memcpy(dst: *mut u8, src: *const u8, len: usize) -> *mut u8 {
    for i in 0..len {
        // SAFETY: the caller vouches for `len` bytes at both. Volatile, or this becomes a memcpy.
        unsafe { dst.add(i).write_volatile(src.add(i).read_volatile()) };
    }
    dst
});
by_byte!(memmove(dst: *mut u8, src: *const u8, len: usize) -> *mut u8 {
    for step in 0..len {
        let i = if dst.cast_const() < src { step } else { len - 1 - step };
        // SAFETY: the caller vouches for `len` bytes at both; the order keeps an overlap intact.
        unsafe { dst.add(i).write_volatile(src.add(i).read_volatile()) };
    }
    dst
});
by_byte!(memcmp(dst: *mut u8, src: *const u8, len: usize) -> i32 {
    for i in 0..len {
        // SAFETY: the caller vouches for `len` bytes at both.
        let (a, b) = unsafe { (dst.add(i).read_volatile(), src.add(i).read_volatile()) };
        if a != b {
            return i32::from(a) - i32::from(b);
        }
    }
    0
});
by_byte!(bcmp(dst: *mut u8, src: *const u8, len: usize) -> i32 {
    // SAFETY: as for this function.
    unsafe { memcmp(dst, src, len) }
});

// Referenced by the prebuilt core although nothing unwinds.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}
#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume() -> ! {
    exit(3)
}
