import { describe, expect, it } from 'vitest';
import { needed, sandboxControllerConfig } from '../sandbox-controller.config.js';
import { advertisedAddress } from './session-service.js';

describe('the address that gateways are told', () => {
  it('is what is listened on unless another one is set', () => {
    expect(advertisedAddress(undefined, '127.0.0.1', 7001)).toBe('127.0.0.1:7001');
    expect(advertisedAddress(undefined, '::1', 7001)).toBe('[::1]:7001');
  });

  it('gets the port where only a host is set', () => {
    expect(advertisedAddress('10.0.0.7', '0.0.0.0', 7001)).toBe('10.0.0.7:7001');
    expect(advertisedAddress('controller-0.sandboxes', '0.0.0.0', 7001)).toBe('controller-0.sandboxes:7001');
    expect(advertisedAddress('[fd00::7]', '::', 7001)).toBe('[fd00::7]:7001');
    expect(advertisedAddress('fd00::7', '::', 7001)).toBe('[fd00::7]:7001');
  });

  it('is left alone where it has both', () => {
    expect(advertisedAddress('10.0.0.7:9000', '0.0.0.0', 7001)).toBe('10.0.0.7:9000');
    expect(advertisedAddress('[fd00::7]:9000', '::', 7001)).toBe('[fd00::7]:9000');
  });
});

describe('the settings', () => {
  it('name the one that the driver needs and that is missing', () => {
    const config = sandboxControllerConfig.parse({ ETUDE_SANDBOX_DRIVER: 'kubernetes', ETUDE_SANDBOX_NAMESPACE: 'boxes' });
    expect(needed(config, 'ETUDE_SANDBOX_NAMESPACE')).toBe('boxes');
    expect(() => needed(config, 'ETUDE_SANDBOX_TOKEN_SECRET')).toThrow(
      expect.objectContaining({ code: 'FAILED_PRECONDITION', message: expect.stringContaining('ETUDE_SANDBOX_TOKEN_SECRET') as string }),
    );
  });

  it('refuse a token that could be guessed', () => {
    expect(sandboxControllerConfig.safeParse({ ETUDE_SANDBOX_INTERNAL_TOKEN: 'short' }).success).toBe(false);
  });
});
