/// The middle value, or the mean of the two in the middle of an even number; `None` if there are none. Reorders them.
pub fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let (last, middle) = (values.len().checked_sub(1)?, values.len() / 2);
    Some(f64::midpoint(values[last / 2], values[middle]))
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_middle_value_or_the_mean_of_the_two() {
        assert_eq!(median(&mut []), None);
        assert_eq!(median(&mut [7.0]), Some(7.0));
        assert_eq!(median(&mut [9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 9.0]), Some(3.0));
    }
}
