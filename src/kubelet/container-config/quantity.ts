import { quantityMilliValue, quantityValue } from "#kinds";

/** In units, rounded up; 0 for absent. */
export const wholeValue = (quantity: string | undefined): number => Math.ceil(quantityValue(quantity));

/** In thousandths, rounded up; 0 for absent. */
export const milliValue = (quantity: string | undefined): number => quantityMilliValue(quantity);

/** True for an absent quantity and for zero. */
export const isZero = (quantity: string | undefined): boolean => quantityValue(quantity) === 0;
