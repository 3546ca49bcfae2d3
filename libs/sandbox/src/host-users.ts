import { execFile } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { userInfo } from 'node:os';
import { promisify } from 'node:util';
import { EtudeError } from '@etude/contracts/errors';

/** Users and groups of this machine that sandboxes may run as: `count` users from `firstUid` on, and as many groups from `firstGid` on. */
export interface HostUserRange {
  readonly firstUid: number;
  readonly firstGid: number;
  readonly count: number;
}

export interface HostUser {
  readonly uid: number;
  readonly gid: number;
}

interface SandboxUser extends HostUser {
  /** The uid and gid of this user inside a nest (one bubblewrap that starts many sandboxes). */
  readonly inside: number;
  giveBack(): void;
}

/** The default range for root. The usual ranges of /etc/subuid, of systemd and of user directories (LDAP) end below it. */
const ROOT_RANGE: HostUserRange = { firstUid: 2_000_000_000, firstGid: 2_000_000_000, count: 65_536 };
/** One process takes this many users of a range, so it can't have more sandboxes. A range of 65,536 serves 64 processes at once. */
const BLOCK = 1_024;

/** Users inside a nest: the user of its process 1, mapped to the user who started bubblewrap, and the user of the first sandbox. */
const NEST_USER = 1_000;
const FIRST_INSIDE = 2_000;

const run = promisify(execFile);

/**
 * Users of this machine for the sandboxes of this process. No two live sandboxes have the same user, even in two processes, because each
 * process takes a block of the range. A local socket locks the block; the kernel frees its name when the process ends.
 */
export class HostUsers {
  /** Numbers in the block, longest unused first. */
  private readonly free: number[];

  private constructor(
    private readonly block: HostUserRange,
    private readonly lock: Server,
    private readonly isRoot: boolean,
  ) {
    // Starts at a random user, because dying sandboxes of the block's former process may still have the first users.
    const start = randomInt(block.count);
    this.free = Array.from({ length: block.count }, (_, i) => (start + i) % block.count);
  }

  /**
   * @param range undefined: the range of root, or the range of this user in /etc/subuid and /etc/subgid
   * @param nested whether a nest starts the sandboxes; otherwise this process must be able to start each one as its user
   * @returns the users; if there are none, a text for people that says why and what to do
   */
  static async take(range: HostUserRange | undefined, nested: boolean): Promise<HostUsers | string> {
    const isRoot = process.getuid?.() === 0;
    if (!isRoot && !nested) return 'this machine allows no nested namespaces, so only root can give each sandbox a user of its own';
    const found = range ?? (isRoot ? ROOT_RANGE : await subordinateRange());
    if (typeof found === 'string') return found;
    const { firstUid, firstGid, count } = found;
    for (let from = 0; from < count; from += BLOCK) {
      const block = { firstUid: firstUid + from, firstGid: firstGid + from, count: Math.min(BLOCK, count - from) };
      const lock = await locked(`etude-sandbox-users-${block.firstUid}`);
      if (lock) return new HostUsers(block, lock, isRoot);
    }
    return `other processes have all ${count} users from ${firstUid} on; set ETUDE_SANDBOX_UIDS to a range of ${BLOCK} users for each process`;
  }

  /** A user that no sandbox has. @throws EtudeError SANDBOX_CAPACITY if sandboxes have all users */
  take(): SandboxUser {
    const { firstUid, firstGid, count } = this.block;
    const number = this.free.shift();
    if (number !== undefined)
      return { uid: firstUid + number, gid: firstGid + number, inside: FIRST_INSIDE + number, giveBack: () => void this.free.push(number) };
    const why = `sandboxes use all ${count} users of this process. Widen ETUDE_SANDBOX_UIDS (a process takes ${BLOCK}), or start another controller.`;
    throw new EtudeError('SANDBOX_CAPACITY', why, { metadata: { exit: 'capacity' } });
  }

  /** Maps the users of this block into the user namespace of a nest, which `starter` has started. @throws Error with advice if this is refused */
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

  /** The kernel accepts a map from the namespace's owner with CAP_SETUID or CAP_SETGID. newuidmap has it; for root, setpriv grants it. */
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

/** Reads a range such as "100000:65536": first id and number of ids, for users and groups. undefined if it is no range below 2^31. */
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
    // The user has no entry in /etc/passwd.
    return uid;
  }
}

async function rangeOf(path: string, names: readonly string[]): Promise<{ first: number; count: number } | undefined> {
  const lines = (await readFile(path, 'utf8').catch(() => '')).split('\n').map((line) => line.trim().split(':'));
  const [, first, count] = lines.find(([name = '']) => names.includes(name)) ?? [];
  return first && Number(count) > 0 ? { first: Number(first), count: Number(count) } : undefined;
}

/** Listens on a local socket that has a name but no file. null if another process has this name. */
function locked(name: string): Promise<Server | null> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', (error: NodeJS.ErrnoException) => (error.code === 'EADDRINUSE' ? resolve(null) : reject(error)));
    server.listen({ path: `\0${name}` }, () => resolve(server.unref()));
  });
}
