import { RunAssembly } from '@etude/sandbox/driven-sandboxes';
import type { SandboxDriver } from '@etude/sandbox/sandbox-driver';
import { Child, type Endpoint } from './sandbox-child.js';
import { execution, never, SHAPE } from './sandbox-claims.js';
import type { KubernetesChoice } from './sandbox-drivers.js';

const CONTROLLERS = 3;

const repeats = (names: readonly unknown[]) => names.length - new Set(names).size;

/** Three controllers claim from one pool at the same moment. @returns number of claims, and of pods that two claims were given */
export async function raceForPods(choice: KubernetesChoice, pods: number): Promise<{ claims: number; doubles: number }> {
  const count = Math.floor(pods / CONTROLLERS);
  const children = Array.from({ length: CONTROLLERS }, () => new Child({ do: 'claim', choice, count }));
  try {
    await Promise.all(children.map((child) => child.line()));
    for (const child of children) child.go();
    const given = (await Promise.all(children.map((child) => child.line()))).flat();
    for (const child of children) child.go();
    await Promise.all(children.map((child) => child.line()));
    return { claims: given.length, doubles: repeats(given) };
  } finally {
    await Promise.all(children.map((child) => child.kill()));
  }
}

/** Three controllers bind claims of their own to the same supervisors, all at once. @returns number of claims, and of second binds of a supervisor */
export async function raceForBinds(endpoints: readonly Endpoint[], claims: number): Promise<{ claims: number; doubles: number }> {
  const claimsEach = Math.ceil(claims / CONTROLLERS / endpoints.length);
  const children = Array.from({ length: CONTROLLERS }, () => new Child({ do: 'bind', endpoints: [...endpoints], claimsEach }));
  try {
    await Promise.all(children.map((child) => child.line()));
    for (const child of children) child.go();
    const given = (await Promise.all(children.map((child) => child.line()))) as number[][];
    const perSupervisor = endpoints.map((_, at) => given.reduce((sum, one) => sum + (one[at] ?? 0), 0));
    if (perSupervisor.some((times) => times === 0)) throw new Error('a supervisor accepted no claim');
    return { claims: claimsEach * CONTROLLERS * endpoints.length, doubles: perSupervisor.reduce((sum, times) => sum + times - 1, 0) };
  } finally {
    await Promise.all(children.map((child) => child.kill()));
  }
}

/** Callers of one controller race for its local sandboxes, which no other controller can reach. */
export async function raceForProcesses(driver: SandboxDriver, claims: number): Promise<{ claims: number; doubles: number }> {
  const given: unknown[] = [];
  const one = async () => {
    const sandbox = await driver.claim(SHAPE, never());
    const who = new RunAssembly();
    // The number of an ended namespace may be reused, so the start time of the namespace's process 1 is compared too.
    await sandbox.execute(execution('import os\nprint(os.readlink("/proc/self/ns/pid"), os.stat("/proc/1").st_ctime_ns)'), who, never());
    given.push(who.results[0]?.stdout);
    await sandbox.release();
  };
  const lane = async () => {
    while (given.length < claims) await one();
  };
  await Promise.all(Array.from({ length: CONTROLLERS * 2 }, lane));
  return { claims: given.length, doubles: repeats(given) };
}
