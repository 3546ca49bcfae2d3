import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { SkillSchema, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { EXIT } from '../errors.js';
import { importedText, importExit, readSkill, writeSkill } from './transfer-skills.js';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'etude-skill-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const bytes = (text: string) => new TextEncoder().encode(text);
const FILES = [
  { path: 'SKILL.md', data: bytes('---\nname: double\n---\n') },
  { path: 'scripts/größe.py', data: bytes('print(1)') },
];

describe('writeSkill', () => {
  it('writes a folder that is read again as it was', async () => {
    await writeSkill(join(dir, 'out'), 'double', FILES, false);
    const [format, files] = readSkill(join(dir, 'out'));
    expect(format).toBe('folder');
    expect(files.map(({ path, data }) => ({ path, data: new Uint8Array(data) }))).toEqual(FILES);
  });

  it('writes an archive that others can open', async () => {
    await writeSkill(join(dir, 'out.zip'), 'to_double', FILES, false);
    const script =
      'import sys, zipfile\nz = zipfile.ZipFile(sys.argv[1])\nassert z.testzip() is None\nprint([(i.filename, z.read(i).decode()) for i in z.infolist()])';
    expect(execFileSync('python3', ['-c', script, join(dir, 'out.zip')], { encoding: 'utf8' }).trim()).toBe(
      "[('to-double/SKILL.md', '---\\nname: double\\n---\\n'), ('to-double/scripts/größe.py', 'print(1)')]",
    );
    expect(readSkill(join(dir, 'out.zip'))[0]).toBe('zip');
  });

  it.each(['../out.py', '/etc/passwd', 'a/../../b', 'a\\b', '', './a', 'a//b'])('never writes to %j', async (path) => {
    await expect(writeSkill(join(dir, 'out'), 'double', [{ path, data: bytes('x') }], false)).rejects.toThrow('which is not written');
    expect(existsSync(join(dir, 'out.py'))).toBe(false);
  });

  it('overwrites nothing unless it is told to, and follows no link', async () => {
    mkdirSync(join(dir, 'out'));
    writeFileSync(join(dir, 'mine'), 'mine');
    symlinkSync(join(dir, 'mine'), join(dir, 'out', 'SKILL.md'));
    await expect(writeSkill(join(dir, 'out'), 'double', FILES, false)).rejects.toThrow('is there already');
    await writeSkill(join(dir, 'out'), 'double', FILES, true);
    expect(readFileSync(join(dir, 'mine'), 'utf8')).toBe('mine');
    expect(readFileSync(join(dir, 'out', 'SKILL.md'), 'utf8')).toContain('double');
  });
});

describe('readSkill', () => {
  it('leaves links out', () => {
    writeFileSync(join(dir, 'SKILL.md'), 'x');
    symlinkSync('/etc/passwd', join(dir, 'secret'));
    expect(readSkill(dir)[1].map(({ path }) => path)).toEqual(['SKILL.md']);
  });

  it('refuses what is no skill, by its name', () => {
    writeFileSync(join(dir, 'skill.txt'), 'x');
    expect(() => readSkill(join(dir, 'skill.txt'))).toThrow('neither a folder');
    expect(() => readSkill(join(dir, 'nothing.zip'))).toThrow('there is no file');
    mkdirSync(join(dir, 'empty'));
    expect(() => readSkill(join(dir, 'empty'))).toThrow('no files');
  });
});

const skill = (name: string, status: SkillStatus, statusReason = '') => create(SkillSchema, { name, version: 1, status, statusReason });

describe('what an import comes to', () => {
  const waiting = skill('skills/double', SkillStatus.PENDING_REVIEW, 'waits for review');
  const rejected = skill('skills/parse_csv', SkillStatus.REJECTED, 'it has no tests');

  it('says why a skill was rejected, and fails by it', () => {
    expect(importedText([waiting, rejected]).split('\n').at(-1)).toBe('parse_csv@1 is rejected: it has no tests');
    expect(importExit([waiting, rejected])).toBe(EXIT.failed);
  });

  it('is well where all of them were taken, and where there was nothing to take it is not', () => {
    expect(importedText([waiting])).not.toContain('waits for review');
    expect(importExit([waiting])).toBe(EXIT.ok);
    expect(importedText([])).toBe('');
    expect(importExit([])).toBe(EXIT.failed);
  });
});
