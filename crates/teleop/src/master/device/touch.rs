//! Fingers on a touchpad: protocol B of the kernel (Documentation/input/multi-touch-protocol.rst), or a single touch.
//!
//! The first finger operates. Another one that comes down beside it moves nothing, and does not take over when the first
//! leaves: the hand would leap from one to the other. Only a finger that comes down while none operates begins to.

/// Fingers that are followed; what is on further ones is ignored.
const SLOTS_MAX: usize = 16;

/// Codes of `ABS_*` that a touchpad sends.
const ABS_X: u16 = 0x00;
const ABS_Y: u16 = 0x01;
const ABS_MT_SLOT: u16 = 0x2f;
const ABS_MT_POSITION_X: u16 = 0x35;
const ABS_MT_POSITION_Y: u16 = 0x36;
const ABS_MT_TOOL_TYPE: u16 = 0x37;
const ABS_MT_TRACKING_ID: u16 = 0x39;
/// Value of `ABS_MT_TOOL_TYPE`: the driver takes the contact for a palm.
const MT_TOOL_PALM: i32 = 2;

/// Last position of a finger, counts; `None` until the device has stated it.
type Place = [Option<i32>; 2];

/// Fingers on a touchpad.
#[derive(Debug, Default)]
pub(super) struct Fingers {
    /// Fingers by slot; `None` where no finger is.
    slots: [Option<Place>; SLOTS_MAX],
    /// The slot that events are about; the kernel states it when it changes.
    slot: usize,
    /// The slot of the finger that moves the hand.
    operating: Option<usize>,
    /// The device states slots, so what it sends for programs that know one finger only is void.
    has_slots: bool,
}

impl Fingers {
    /// A finger operates.
    pub(super) fn is_operating(&self) -> bool {
        self.operating.is_some()
    }

    /// After lost events the fingers' places are not known: all fingers must come down anew.
    pub(super) fn forget(&mut self) {
        self.slots = [None; SLOTS_MAX];
        self.operating = None;
    }

    /// `BTN_TOUCH`: the only finger of a device without slots comes down or leaves.
    pub(super) fn handle_button(&mut self, is_down: bool) {
        if !self.has_slots {
            self.slot = 0;
            self.set_down(is_down);
        }
    }

    /// An absolute axis; returns the axis (0: x, 1: y) and the counts by which the operating finger moved.
    pub(super) fn handle_absolute(&mut self, code: u16, value: i32) -> Option<(usize, f64)> {
        match code {
            ABS_MT_SLOT => {
                self.begin_slots();
                self.slot = usize::try_from(value).unwrap_or(SLOTS_MAX);
                None
            }
            ABS_MT_TRACKING_ID => {
                self.begin_slots();
                self.set_down(value >= 0);
                None
            }
            ABS_MT_TOOL_TYPE if value == MT_TOOL_PALM => {
                self.set_down(false);
                None
            }
            ABS_MT_POSITION_X => self.moved(0, value),
            ABS_MT_POSITION_Y => self.moved(1, value),
            ABS_X | ABS_Y if !self.has_slots => self.moved(usize::from(code), value),
            _ => None,
        }
    }

    /// The first event of a slot: whatever a single touch was before is one of the slots.
    fn begin_slots(&mut self) {
        if !self.has_slots {
            self.has_slots = true;
            self.slot = 0;
            self.forget();
        }
    }

    fn set_down(&mut self, is_down: bool) {
        let Some(place) = self.slots.get_mut(self.slot) else { return };
        *place = is_down.then_some([None; 2]);
        if self.operating == Some(self.slot) {
            self.operating = None;
        } else if is_down && self.operating.is_none() {
            self.operating = Some(self.slot);
        }
    }

    fn moved(&mut self, axis: usize, value: i32) -> Option<(usize, f64)> {
        let place = self.slots.get_mut(self.slot)?.as_mut()?;
        let last = place[axis].replace(value)?;
        (self.operating == Some(self.slot)).then(|| (axis, f64::from(value) - f64::from(last)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sum of what the operating finger moved, counts.
    fn moved(fingers: &mut Fingers, events: &[(u16, i32)]) -> [f64; 2] {
        let mut sum = [0.0; 2];
        for (code, value) in events {
            if let Some((axis, counts)) = fingers.handle_absolute(*code, *value) {
                sum[axis] += counts;
            }
        }
        sum
    }

    #[test]
    fn a_second_finger_moves_nothing_and_does_not_take_over() {
        let mut fingers = Fingers::default();
        let first =
            [(ABS_MT_TRACKING_ID, 40), (ABS_MT_POSITION_X, 1_000), (ABS_MT_POSITION_Y, 500), (ABS_X, 1_000)];
        assert_eq!(moved(&mut fingers, &first), [0.0; 2]);
        assert_eq!(moved(&mut fingers, &[(ABS_MT_POSITION_X, 1_012), (ABS_X, 1_012)]), [12.0, 0.0]);
        let second = [
            (ABS_MT_SLOT, 1),
            (ABS_MT_TRACKING_ID, 41),
            (ABS_MT_POSITION_X, 2_000),
            (ABS_MT_POSITION_X, 2_300),
        ];
        assert_eq!(moved(&mut fingers, &second), [0.0; 2]);
        assert_eq!(moved(&mut fingers, &[(ABS_MT_SLOT, 0), (ABS_MT_POSITION_Y, 490)]), [0.0, -10.0]);
        // The first leaves: the kernel's single touch leaps to the second one, the hand does not.
        fingers.handle_absolute(ABS_MT_TRACKING_ID, -1);
        assert!(!fingers.is_operating());
        let leap = [(ABS_X, 2_300), (ABS_MT_SLOT, 1), (ABS_MT_POSITION_X, 2_400)];
        assert_eq!(moved(&mut fingers, &leap), [0.0; 2]);
        // A third one comes down, and operates from where it is.
        let third = [
            (ABS_MT_SLOT, 0),
            (ABS_MT_TRACKING_ID, 42),
            (ABS_MT_POSITION_X, 3_000),
            (ABS_MT_POSITION_X, 3_001),
        ];
        assert_eq!(moved(&mut fingers, &third), [1.0, 0.0]);
        assert!(fingers.is_operating());
    }

    #[test]
    fn a_contact_that_is_replaced_or_a_palm_lets_go() {
        let mut fingers = Fingers::default();
        moved(&mut fingers, &[(ABS_MT_TRACKING_ID, 1), (ABS_MT_POSITION_X, 10)]);
        // The same slot, another finger: it must come down anew.
        moved(&mut fingers, &[(ABS_MT_TRACKING_ID, 2)]);
        assert!(!fingers.is_operating());
        moved(&mut fingers, &[(ABS_MT_TRACKING_ID, -1), (ABS_MT_TRACKING_ID, 3)]);
        assert!(fingers.is_operating());
        moved(&mut fingers, &[(ABS_MT_TOOL_TYPE, MT_TOOL_PALM)]);
        assert!(!fingers.is_operating());
        assert_eq!(moved(&mut fingers, &[(ABS_MT_POSITION_X, 99), (ABS_MT_POSITION_X, 100)]), [0.0; 2]);
    }

    #[test]
    fn slots_beyond_those_that_are_followed_are_ignored() {
        let mut fingers = Fingers::default();
        for slot in [SLOTS_MAX as i32, i32::MAX, -1] {
            let touch = [
                (ABS_MT_SLOT, slot),
                (ABS_MT_TRACKING_ID, 7),
                (ABS_MT_POSITION_X, 1),
                (ABS_MT_POSITION_X, 9),
            ];
            assert_eq!(moved(&mut fingers, &touch), [0.0; 2]);
            assert!(!fingers.is_operating());
        }
    }
}
