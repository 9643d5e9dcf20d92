//! Clock exchanges with any stamps: no estimator panics, and no width is negative.
#![no_main]

use libfuzzer_sys::fuzz_target;
use noctule_time_sync::{Bounded, BoundedConfig, Ema, EmaPreset, Estimator, Exchange};
use noctule_timebase::{Instant, Span};

fuzz_target!(|bytes: &[u8]| {
    let Some((&head, stamps)) = bytes.split_first() else { return };
    let config = BoundedConfig { distrust_past: head & 1 != 0, ..BoundedConfig::default() };
    let mut bounded = Bounded::new(config);
    let mut ema = Ema::new(if head & 2 != 0 { EmaPreset::Px4 } else { EmaPreset::Mavros });
    let mut last = [0_i64; 4];
    for chunk in stamps.chunks_exact(32) {
        let word = |at: usize| i64::from_le_bytes(std::array::from_fn(|i| chunk[8 * at + i]));
        // Stamps near the last ones get past the first checks; any at all must not break anything.
        let next = std::array::from_fn(|i| match head & 4 {
            0 => word(i),
            _ => last[i].wrapping_add(word(i) >> (head >> 3)),
        });
        last = next;
        let exchange = Exchange::from_ns(next[0], next[1], next[2], next[3]);
        for estimator in [&mut bounded as &mut dyn Estimator, &mut ema] {
            let _ = estimator.handle_exchange(&exchange);
            for now_ns in [next[3], next[3].saturating_add(1_000_000_000), next[0], i64::MIN, i64::MAX] {
                let Some(estimate) = estimator.estimate(Instant::from_ns(now_ns)) else { continue };
                assert!(estimate.bound.is_none_or(|bound| bound >= Span::ZERO), "{estimate:?}");
                assert!(estimate.sigma.is_none_or(|sigma| sigma >= Span::ZERO), "{estimate:?}");
            }
        }
        let counters = bounded.counters();
        assert!(counters.accepted as usize + counters.rejected() as usize <= stamps.len() / 32 + 1);
    }
});
