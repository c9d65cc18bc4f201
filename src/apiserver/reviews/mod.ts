export { createAccessReviews } from "./access-reviews.ts";
export { createIdentityReviews } from "./identity-reviews.ts";
