import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readOverlays, requirePromised } from './overlays.js';

let folder = '';
beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), 'etude-overlays-'))));
afterEach(() => rm(folder, { recursive: true }));

const installed = (template: string, name: string, version: string) =>
  mkdir(join(folder, template, `${name}-${version}.dist-info`), { recursive: true });
const checked = async (promised: Record<string, string[]>) => requirePromised(await readOverlays(folder), promised);
const refused = async (promised: Record<string, string[]>) =>
  checked(promised).then(
    () => '',
    (error: Error & { code: string }) => `${error.code}: ${error.message}`,
  );

describe('folders of packages', () => {
  it('hold what the list promises, however names are written', async () => {
    await installed('science', 'Roman_Digits', '1.4.0');
    await installed('science', 'tables_core', '2.1');
    await expect(checked({ science: ['roman-digits==1.4.0'], default: [] })).resolves.toBeUndefined();
  });

  it('are refused for what is missing, other or double, by name', async () => {
    await installed('science', 'roman_digits', '1.4.0');
    await installed('science', 'roman_digits', '1.3.0');
    await installed('science', 'sums', '3');
    const message = await refused({ science: ['roman-digits==1.4.0', 'sums==2', 'absent==1.0'] });
    expect(message).toMatch(/^FAILED_PRECONDITION: The packages of the sandbox template "science"/);
    for (const problem of ['sums==2 is there as 3', 'absent==1.0 is missing', 'roman-digits==1.4.0 is there as 1.'])
      expect(message).toContain(problem);
    expect(message).toContain(`Its folder is ${join(folder, 'science')}: make it anew`);
  });

  it('are refused where there is none for a template that is promised packages', async () => {
    await mkdir(join(folder, 'other'));
    expect(await refused({ science: ['sums==3'] })).toMatch(/"science".*there is no folder of that name.*ETUDE_SANDBOX_OVERLAYS_PATH/);
  });
});
