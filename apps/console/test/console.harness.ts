import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { jwtIssuer } from '@etude/test-support/jwt-issuer';
import { freePort } from '@etude/test-support/ports';
import { startStack, type TestStack } from '@etude/test-support/stack';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const PICTURES = here('../../../docs/images/');
const keyOf = (role: string) => `key-of-${role}`;
const ROLES = { owner: ['user', 'reviewer', 'operator'], guest: ['user'] } as const;
/** Who signs in. `ann` has a token that is bound to the end user "ann"; the others have keys. */
export type Who = keyof typeof ROLES | 'ann';

/** A real stack with the built console, and a browser. */
export class ConsoleRig {
  readonly #dir = mkdtempSync(join(tmpdir(), 'etude-console-'));
  readonly #issuer = jwtIssuer();
  base = '';
  stack!: TestStack;
  browser!: Browser;
  /** Refusals by the Content-Security-Policy, and errors of pages. */
  readonly #mistakes: string[] = [];
  readonly #contexts: BrowserContext[] = [];

  async start(): Promise<void> {
    execFileSync(process.execPath, [here('../build.mjs')]);
    const keys = join(this.#dir, 'keys.json');
    const entries = Object.entries(ROLES).map(([name, roles]) => {
      const sha256 = createHash('sha256').update(keyOf(name)).digest('hex');
      return { sha256, tenant: 'test', roles, name };
    });
    writeFileSync(keys, JSON.stringify({ keys: entries }));
    const port = await freePort();
    this.base = `http://127.0.0.1:${port}`;
    const env = {
      ETUDE_REST_PORT: `${port}`,
      ETUDE_AUTH_KEYS_PATH: keys,
      ...this.#issuer.settings(this.#dir),
      ETUDE_JWT_USER_CLAIM: 'sub',
      ETUDE_SANDBOX_INTERNAL_TOKEN: 'token-of-the-console-tests',
      // Withholds often, so that a lift is measured after few tasks.
      ETUDE_RECALL_WITHHOLD_PROBABILITY: '0.5',
    };
    const [stack, browser] = await Promise.all([
      startStack({ script: here('./console.yaml'), env }),
      chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] }),
    ]);
    Object.assign(this, { stack, browser });
    await stack.startRolloutWorker();
  }

  async stop(): Promise<void> {
    await this.browser?.close();
    await this.stack?.stop();
    rmSync(this.#dir, { recursive: true, force: true });
  }

  /** Calls the API with the owner's key. */
  async call<T = Record<string, never>>(verb: string, path: string, body?: unknown): Promise<T> {
    const headers = { authorization: `Bearer ${keyOf('owner')}`, 'content-type': 'application/json' };
    const response = await fetch(`${this.base}${path}`, { method: verb, headers, body: body === undefined ? null : JSON.stringify(body) });
    const json = (await response.json()) as T;
    if (!response.ok) throw new Error(`${verb} ${path}: ${JSON.stringify(json)}`);
    return json;
  }

  /** Repeats the steps in an ended task's stored events until there are `events` events. */
  lengthen(task: string, events: number): void {
    const key = `etude:events:test:${task.replace('tasks/', '')}`;
    execFileSync('redis-cli', ['-e', '-u', this.stack.redis.url, '--eval', here('./lengthen.lua'), key, ',', `${events}`]);
  }

  /** Opens a page of the console in a new browser context, signed in by a key in the address. */
  async open(
    path: string,
    { who = 'owner', colours = 'light' }: { readonly who?: Who | null; readonly colours?: 'light' | 'dark' } = {},
  ): Promise<Page> {
    const context = await this.browser.newContext({
      colorScheme: colours,
      viewport: { width: 1280, height: 800 },
      locale: 'en',
    });
    this.#contexts.push(context);
    const page = await context.newPage();
    page.setDefaultTimeout(20_000);
    page.on('pageerror', ({ message }) => this.#mistakes.push(message));
    page.on('console', (said) => /Content Security Policy|Trusted/i.test(said.text()) && this.#mistakes.push(said.text()));
    const key = who === 'ann' ? this.#issuer.token({ tenant: 'test', sub: who }) : who && keyOf(who);
    await page.goto(`${this.base}/console${path}${key === null ? '' : `#key=${key}`}`);
    return page;
  }

  /** Goes to another page of the console, as a link does, and waits until it is loaded. */
  async move(page: Page, path: string): Promise<void> {
    await page.evaluate(`history.pushState(null, '', ${JSON.stringify(`/console${path}`)}); dispatchEvent(new Event('etude-moved'))`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.locator('.loading').first().waitFor({ state: 'detached' });
  }

  /** Scrolls a box in each of 60 frames. `cpuMs` is CPU time of the page's thread per frame, which hardly depends on other processes. */
  async scroll(page: Page, box: string): Promise<{ readonly framesPerSecond: number; readonly cpuMs: number }> {
    const session = await page.context().newCDPSession(page);
    await session.send('Performance.enable', { timeDomain: 'threadTicks' });
    const workedS = async () => (await session.send('Performance.getMetrics')).metrics.find(({ name }) => name === 'TaskDuration')!.value;
    const before = await workedS();
    const times = await page.evaluate<number[]>(`new Promise((done) => {
      const times = [];
      const scroll = (time) => {
        times.push(time);
        document.querySelector(${JSON.stringify(box)}).scrollTop += 60;
        if (times.length < 60) requestAnimationFrame(scroll);
        else done(times);
      };
      requestAnimationFrame(scroll);
    })`);
    const cpuMs = (((await workedS()) - before) * 1_000) / times.length;
    return { framesPerSecond: ((times.length - 1) * 1_000) / ((times.at(-1) ?? 0) - (times[0] ?? 0)), cpuMs };
  }

  /** @throws Error if a page broke the Content-Security-Policy or failed */
  async closePages(): Promise<void> {
    await Promise.all(this.#contexts.splice(0).map((context) => context.close()));
    const mistakes = this.#mistakes.splice(0);
    if (mistakes.length > 0) throw new Error(mistakes.join('\n'));
  }

  /** Saves a screenshot for the docs if ETUDE_CONSOLE_PICTURES is set. */
  async picture(page: Page, name: string): Promise<void> {
    if (process.env['ETUDE_CONSOLE_PICTURES'] === undefined) return;
    await page.mouse.move(0, 0);
    await page.screenshot({ path: join(PICTURES, `console-${name}.png`) });
  }
}

const AXE = here('../../../node_modules/axe-core/axe.min.js');

interface Finding {
  readonly id: string;
  readonly impact: string;
  readonly nodes: ReadonlyArray<{ readonly target: unknown }>;
}

/** An isolated JavaScript world with axe for each page, because the page's policy forbids other scripts in its own world. */
const worlds = new WeakMap<Page, Promise<(expression: string) => Promise<string>>>();

async function worldWithAxe(page: Page): Promise<(expression: string) => Promise<string>> {
  const session = await page.context().newCDPSession(page);
  const { frameTree } = await session.send('Page.getFrameTree');
  const { executionContextId: contextId } = await session.send('Page.createIsolatedWorld', { frameId: frameTree.frame.id });
  await session.send('Runtime.evaluate', { expression: readFileSync(AXE, 'utf8'), contextId });
  return async (expression) => {
    const asked = { expression, contextId, awaitPromise: true, returnByValue: true };
    return (await session.send('Runtime.evaluate', asked)).result.value as string;
  };
}

/** Serious findings of axe on a page, as one line each. @param rules default: all */
export async function seriousFindings(page: Page, rules: readonly string[] = []): Promise<string[]> {
  const world = worlds.get(page) ?? worldWithAxe(page);
  worlds.set(page, world);
  const options = { resultTypes: ['violations'], ...(rules.length > 0 ? { runOnly: rules } : {}) };
  const run = `axe.run(document, ${JSON.stringify(options)}).then(({ violations }) => JSON.stringify(violations))`;
  const all = JSON.parse(await (await world)(run)) as Finding[];
  const serious = all.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  return serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => JSON.stringify(target)).join(' ')}`);
}
