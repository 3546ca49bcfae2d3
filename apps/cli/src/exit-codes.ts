/** What the process ends with; the table in docs/cli.md is for people. */
export const EXIT = {
  ok: 0,
  /** It ran, and the answer is no: a task unsolved, a test failed. */
  failed: 1,
  /** Wrong arguments or a request that the gateway called invalid. */
  usage: 2,
  notFound: 3,
  /** Gateway not reachable, overloaded, or something that is needed is not installed. */
  unavailable: 4,
  /** No key, a wrong key, or one without the right. */
  refused: 5,
  /** It stands against what is there: same request id with another body, a stale digest, a wrong state. */
  conflict: 6,
  deadline: 7,
  /** A bug in etude. */
  internal: 70,
  interrupted: 130,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];
