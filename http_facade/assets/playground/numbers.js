// Numbers and amounts as texts.

const GROUPED = new Intl.NumberFormat("en");
const MONEY = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const SMALL_MONEY = new Intl.NumberFormat("en", { maximumFractionDigits: 6 });
const MICRO = 1_000_000;

/** @param {number} value */
export const grouped = (value) => GROUPED.format(value);

/** @param {number} milliseconds */
export const seconds = (milliseconds) => (milliseconds / 1000).toFixed(1);

/**
 * Return an amount in credits: two decimals from 1 upward, up to six below, so that no amount but 0 reads as 0.
 * @param {string | number | undefined} microCredits
 */
export function credits(microCredits) {
  const amount = Number(microCredits ?? 0) / MICRO;
  return (amount >= 1 ? MONEY : SMALL_MONEY).format(amount);
}

/** @param {number} share from 0 to 1 */
export const percent = (share) => `${(share * 100).toFixed(share < 0.1 ? 2 : 0)} %`;
