/** The version that every program of this tree reports. */
export const VERSION = "0.1.0";
