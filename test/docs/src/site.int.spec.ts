import { execFile } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../..', import.meta.url));

let site: string;
/** The text of each page, by its path in the site. */
let pages: ReadonlyMap<string, string>;

beforeAll(async () => {
  site = mkdtempSync(join(tmpdir(), 'etude-site-'));
  await promisify(execFile)(process.execPath, ['tools/docs-site/build.mjs', site], { cwd: root, timeout: 110_000 });
  pages = new Map(globSync('**/*.html', { cwd: site }).map((page) => [page, readFileSync(join(site, page), 'utf8')]));
});

afterAll(() => rmSync(site, { recursive: true, force: true }));

/** Links of a page that lead nowhere, with the page. */
function brokenLinks(page: string, text: string): string[] {
  const links = [...text.matchAll(/<a\b[^>]*\bhref="([^"]+)"/g)].map(([, href = '']) => href);
  return links
    .filter((href) => !/^(https?|mailto):/.test(href))
    .flatMap((href) => {
      const [path = '', id] = href.split('#');
      const target = path === '' ? page : path.startsWith('/') ? path.slice(1) || 'index.html' : resolve('/', dirname(page), path).slice(1);
      if (path.endsWith('.json') || path.endsWith('/')) return existsSync(join(site, target)) ? [] : [`${page}: ${href}`];
      const found = pages.get(target);
      const isThere = found !== undefined && (!id || found.includes(`id="${decodeURIComponent(id)}"`));
      return isThere ? [] : [`${page}: ${href}`];
    });
}

it('has no link that leads nowhere', () => {
  expect(pages.size).toBeGreaterThan(60);
  expect([...pages].flatMap(([page, text]) => (page === '404.html' ? [] : brokenLinks(page, text)))).toEqual([]);
});

it('has a page for each service of the API, with comments and types', () => {
  const tasks = pages.get('docs/reference/api/tasks.html') ?? '';
  expect(tasks).toContain('survives a crash of any process');
  expect(tasks).toMatch(/href="[^"]*#submittaskrequest"/);
  expect(pages.get('docs/reference/api/http.html')).toContain('POST /v1/tasks');
});

it('tells what each field of the API means that has no type of its own', () => {
  const api = [...pages].filter(([page]) => page.startsWith('docs/reference/api/'));
  const rows = api.flatMap(([, text]) => [
    ...text.matchAll(/<tr>\s*<td><code>([a-z]\w*)<\/code><\/td>\s*<td>[^<]+<\/td>\s*<td>(.*?)<\/td>/g),
  ]);
  expect(rows.length).toBeGreaterThan(700);
  expect(rows.filter(([, , meaning]) => meaning === '').map(([, field]) => field)).toEqual([]);
});

it('has an index for its search that knows every section', () => {
  const index = globSync('assets/chunks/@localSearchIndex*.js', { cwd: site }).map((file) => readFileSync(join(site, file), 'utf8'))[0];
  expect(index).toContain('SubmitTask');
  expect(index).toContain('Upgrade, roll back, remove');
});
