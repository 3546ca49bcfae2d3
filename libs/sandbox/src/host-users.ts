import { execFile } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { userInfo } from 'node:os';
import { promisify } from 'node:util';
import { EtudeError } from '@etude/contracts/errors';

/** Users and groups of this machine that sandboxes may run as: `count` of each, from `firstUid` and `firstGid` on. */
export interface HostUserRange {
  readonly firstUid: number;
  readonly firstGid: number;
  readonly count: number;
}

export interface HostUser {
  readonly uid: number;
  readonly gid: number;
}

export interface SandboxUser extends HostUser {
  /** User and group within a nest. */
  readonly inside: number;
  giveBack(): void;
}

/** The range of root. The ranges of /etc/subuid, of systemd and of common directories end below it. */
const ROOT_RANGE: HostUserRange = { firstUid: 2_000_000_000, firstGid: 2_000_000_000, count: 65_536 };
/** One process takes this many of a range, which bounds its sandboxes. A range of 65,536 serves 64 processes at once. */
const BLOCK = 1_024;

/** Inside a nest: the user of its process 1, which is the user outside who started it, and the first user of a sandbox. */
const NEST_USER = 1_000;
const FIRST_INSIDE = 2_000;

const run = promisify(execFile);

/**
 * Users of this machine for the sandboxes of this process. No two live sandboxes have the same user, even in two processes: each process
 * takes a block of the range. The block is locked by a local socket, whose name the kernel frees when the process ends.
 */
export class HostUsers {
  /** Numbers in the block, longest unused first. */
  private readonly free: number[];

  private constructor(
    private readonly block: HostUserRange,
    private readonly lock: Server,
    private readonly isRoot: boolean,
  ) {
    // The first ones may still belong to dying sandboxes of the process that had the block before.
    const start = randomInt(block.count);
    this.free = Array.from({ length: block.count }, (_, i) => (start + i) % block.count);
  }

  /**
   * @param range undefined: the range of root, or that of this user in /etc/subuid and /etc/subgid
   * @param nested whether a nest starts the sandboxes; otherwise this process must be able to start each one as its user
   * @returns where there are none, why all sandboxes share one user, for people, and what to do about it
   */
  static async take(range: HostUserRange | undefined, nested: boolean): Promise<HostUsers | string> {
    const isRoot = process.getuid?.() === 0;
    if (!isRoot && !nested) return 'this machine allows no namespaces in namespaces, so only root can start sandboxes as other users';
    const found = range ?? (isRoot ? ROOT_RANGE : await subordinateRange());
    if (typeof found === 'string') return found;
    const { firstUid, firstGid, count } = found;
    for (let from = 0; from < count; from += BLOCK) {
      const block = { firstUid: firstUid + from, firstGid: firstGid + from, count: Math.min(BLOCK, count - from) };
      const lock = await locked(`etude-sandbox-users-${block.firstUid}`);
      if (lock) return new HostUsers(block, lock, isRoot);
    }
    return `other processes have all ${count} users from ${firstUid} on; set ETUDE_SANDBOX_UIDS to a range with ${BLOCK} for each process`;
  }

  /** A user that no sandbox has. @throws EtudeError SANDBOX_CAPACITY if sandboxes have all of them */
  take(): SandboxUser {
    const { firstUid, firstGid, count } = this.block;
    const number = this.free.shift();
    if (number !== undefined)
      return { uid: firstUid + number, gid: firstGid + number, inside: FIRST_INSIDE + number, giveBack: () => void this.free.push(number) };
    const why = `the ${count} sandboxes of this process have all of its users; widen ETUDE_SANDBOX_UIDS`;
    throw new EtudeError('SANDBOX_CAPACITY', why, { metadata: { exit: 'capacity' } });
  }

  /**
   * Maps the users into the new user namespace of a nest, which `starter` has started.
   *
   * @throws Error with advice if the kernel or newuidmap refuses
   */
  async map(pid: number, starter: HostUser): Promise<void> {
    const { firstUid, firstGid, count } = this.block;
    const extents = (own: number, first: number) => [NEST_USER, own, 1, FIRST_INSIDE, first, count].map(String);
    try {
      await this.write('uid', pid, extents(starter.uid, firstUid), starter);
      await this.write('gid', pid, extents(starter.gid, firstGid), starter);
    } catch (error) {
      const why = (error as Error).message.trim().split('\n').at(-1);
      const advice = this.isRoot
        ? 'Root needs CAP_SETUID and CAP_SETGID, setpriv, and in ETUDE_SANDBOX_UIDS a range that /proc/self/uid_map has.'
        : 'Install newuidmap and newgidmap: sudo apt-get install -y uidmap';
      throw new Error(`the users from ${firstUid} on can't be mapped: ${why}. ${advice}`, { cause: error });
    }
  }

  /** The kernel accepts a map from the owner of the namespace with this one capability. That is how newuidmap does it, and setpriv for root. */
  private async write(kind: 'uid' | 'gid', pid: number, extents: readonly string[], { uid, gid }: HostUser): Promise<void> {
    if (!this.isRoot) return void (await run(`new${kind}map`, [String(pid), ...extents]));
    const owner = ['--reuid', String(uid), '--regid', String(gid), '--clear-groups'];
    const capability = ['--inh-caps', `+set${kind}`, '--ambient-caps', `+set${kind}`];
    const text = `${extents.slice(0, 3).join(' ')}\n${extents.slice(3).join(' ')}\n`;
    await run('setpriv', [...owner, ...capability, 'sh', '-c', 'printf %s "$1" > "$2"', 'sh', text, `/proc/${pid}/${kind}_map`]);
  }

  close(): void {
    this.lock.close();
  }
}

/** Reads the text of the setting, as in /etc/subuid: the first user and group, and how many. undefined if it is no range below 2^31. */
export function readHostUserRange(text: string): HostUserRange | undefined {
  const [, first, count] = /^(\d{1,10}):(\d{1,10})$/.exec(text) ?? [];
  const range = { firstUid: Number(first), firstGid: Number(first), count: Number(count) };
  return range.firstUid > 0 && range.count > 0 && range.firstUid + range.count <= 2 ** 31 ? range : undefined;
}

async function subordinateRange(): Promise<HostUserRange | string> {
  const uid = String(process.getuid?.());
  const name = nameOf(uid);
  const [users, groups] = await Promise.all([rangeOf('/etc/subuid', [name, uid]), rangeOf('/etc/subgid', [name, uid])]);
  if (users && groups) return { firstUid: users.first, firstGid: groups.first, count: Math.min(users.count, groups.count) };
  const add = `sudo usermod --add-subuids 200000-265535 --add-subgids 200000-265535 ${name}; sudo apt-get install -y uidmap`;
  return `the user ${name} has no range in /etc/subuid and /etc/subgid. Add one: ${add}`;
}

function nameOf(uid: string): string {
  try {
    return userInfo().username;
  } catch {
    // The user has no entry in the directory of users.
    return uid;
  }
}

async function rangeOf(path: string, names: readonly string[]): Promise<{ first: number; count: number } | undefined> {
  const lines = (await readFile(path, 'utf8').catch(() => '')).split('\n').map((line) => line.trim().split(':'));
  const [, first, count] = lines.find(([name = '']) => names.includes(name)) ?? [];
  return first && Number(count) > 0 ? { first: Number(first), count: Number(count) } : undefined;
}

/** Listens at a local address without a file; null if another process does. */
function locked(name: string): Promise<Server | null> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', (error: NodeJS.ErrnoException) => (error.code === 'EADDRINUSE' ? resolve(null) : reject(error)));
    server.listen({ path: `\0${name}` }, () => resolve(server.unref()));
  });
}
