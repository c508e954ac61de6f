use std::cell::Cell;

wit_bindgen::generate!({ inline: "
    package hako:counter;

    interface counters {
      /// A counter that the caller holds.
      resource counter {
        constructor(start: u32);
        add: func(n: u32) -> u32;
        /// The sum of two counters, and the second is gone.
        join: static func(a: borrow<counter>, b: counter) -> counter;
      }
    }

    world counter {
      export counters;
      /// Adds n to a number in memory and returns it: 1, 2, 3 unless each call starts afresh.
      export add: func(n: u32) -> u32;
      /// Traps.
      export crash: func();
      /// Never returns.
      export spin: func();
      /// Takes a number of mebibytes of memory.
      export grow: func(mebibytes: u32) -> u32;
    }
" });

use exports::hako::counter::counters::{Counter, CounterBorrow, Guest as Counters, GuestCounter};

struct Component;

thread_local!(static TOTAL: Cell<u32> = const { Cell::new(0) });

impl Guest for Component {
    fn add(n: u32) -> u32 {
        TOTAL.set(TOTAL.get() + n);
        TOTAL.get()
    }

    fn crash() {
        panic!("crashed as asked")
    }

    fn spin() {
        loop {
            std::hint::black_box(0);
        }
    }

    fn grow(mebibytes: u32) -> u32 {
        let block = vec![1u8; (mebibytes as usize) << 20];
        std::hint::black_box(&block).iter().map(|b| *b as u32).sum::<u32>() >> 20
    }
}

struct Held(Cell<u32>);

impl Counters for Component {
    type Counter = Held;
}

impl GuestCounter for Held {
    fn new(start: u32) -> Self {
        Held(Cell::new(start))
    }

    fn add(&self, n: u32) -> u32 {
        self.0.set(self.0.get() + n);
        self.0.get()
    }

    fn join(a: CounterBorrow<'_>, b: Counter) -> Counter {
        Counter::new(Held(Cell::new(a.get::<Held>().0.get() + b.get::<Held>().0.get())))
    }
}

export!(Component);
