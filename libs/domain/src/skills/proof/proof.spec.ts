import { describe, expect, it } from 'vitest';
import { skillOf, TEST_SIGNER } from '../../../test/bundle-fixture.js';
import { skillDigest } from '../content-digest.js';
import { confidenceOf, isProven, NOTHING_FOUND, signProof } from './proof.js';

const found = { ...NOTHING_FOUND, testsPassed: 4, mutantsMade: 8, mutantsNoticed: 8 };
const bare = skillOf('add', 'def add(a, b):\n    return a + b');
const skill = { ...bare, proof: signProof(bare, found, TEST_SIGNER, 7) };

describe('isProven', () => {
  it('holds for the verified content, also after a round trip', () => {
    expect(isProven(skill, TEST_SIGNER)).toBe(true);
    expect(isProven(structuredClone(JSON.parse(JSON.stringify(skill)) as typeof skill), TEST_SIGNER)).toBe(true);
  });

  it('does not hold without a proof, or without the key', () => {
    expect(isProven(bare, TEST_SIGNER)).toBe(false);
    expect(isProven(skill, { isSigned: () => false })).toBe(false);
  });

  it.each([
    ['code', { code: `${bare.code} ` }],
    ['the entry point', { entryPoint: 'other' }],
    ['tests', { tests: [{ kind: 'python' as const, setup: '', tests: '' }] }],
    ['parameters', { parameters: [{ name: 'a', type: '', description: '', required: true }] }],
    [
      'its dependencies',
      { dependencies: [{ name: 'x', tenant: 'acme', agent: 'solver', user: null, version: 1, digest: 'f'.repeat(64) }] },
    ],
    ['packages', { packages: ['numpy==2.3.1'] }],
    ['its kind', { kind: 'snippet' as const }],
    ['files', { files: [{ path: 'a', contentBase64: '' }] }],
    ['the digest', { digest: 'f'.repeat(64) }],
  ])('does not hold once %s changed', (_what, change) => {
    expect(isProven({ ...skill, ...change }, TEST_SIGNER)).toBe(false);
  });

  it('does not hold for changed evidence or that of another skill', () => {
    for (const change of [{ testsPassed: 400 }, { confidence: 1 }, { findings: [], verifiedAt: 8 }, { keyId: 'other' }, { signature: '' }])
      expect(isProven({ ...skill, proof: { ...skill.proof, ...change } }, TEST_SIGNER)).toBe(false);
    const other = skillOf('sub', 'def sub(a, b):\n    return a - b');
    expect(isProven({ ...other, proof: skill.proof }, TEST_SIGNER)).toBe(false);
    const adopted = { ...skill.proof, digest: other.digest };
    expect(isProven({ ...other, proof: adopted }, TEST_SIGNER)).toBe(false);
  });

  it('does not hold for a function without passed tests', () => {
    const snippet = { ...bare, kind: 'snippet' as const };
    const shown = { ...snippet, digest: skillDigest(snippet) };
    const proof = signProof(shown, NOTHING_FOUND, TEST_SIGNER, 7);
    expect(isProven({ ...shown, proof }, TEST_SIGNER)).toBe(true);
    expect(isProven({ ...shown, proof, kind: 'function' }, TEST_SIGNER)).toBe(false);
    expect(isProven({ ...shown, proof, kind: 'function', digest: bare.digest }, TEST_SIGNER)).toBe(false);
    expect(isProven({ ...bare, proof: signProof(bare, NOTHING_FOUND, TEST_SIGNER, 7) }, TEST_SIGNER)).toBe(false);
  });
});

const finding = (severity: 'info' | 'warning' | 'error') => ({ analyser: 'a', rule: 'r', severity, line: null, message: '' });

describe('confidenceOf', () => {
  it('grows with tests and noticed mutants, and shrinks with warnings', () => {
    expect(confidenceOf(found)).toBe(0.938);
    expect(confidenceOf({ ...found, testsPassed: 1 })).toBe(0.5);
    expect(confidenceOf({ ...found, mutantsMade: 1, mutantsNoticed: 1 })).toBe(0.234);
    expect(confidenceOf({ ...found, heldOutPassed: 4 })).toBe(0.996);
    expect(confidenceOf({ ...found, mutantsNoticed: 4 })).toBe(0.469);
    expect(confidenceOf({ ...found, findings: [finding('warning'), finding('info')] })).toBe(0.891);
  });

  it('is 0 without evidence or with an error of an analyser', () => {
    expect(confidenceOf(NOTHING_FOUND)).toBe(0);
    expect(confidenceOf({ ...found, findings: [finding('error')] })).toBe(0);
  });
});
