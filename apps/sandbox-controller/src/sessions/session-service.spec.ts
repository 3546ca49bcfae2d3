import { describe, expect, it } from 'vitest';
import { needed, sandboxControllerConfig } from '../sandbox-controller.config.js';
import { advertisedAddress } from './session-service.js';

it.each([
  [undefined, '127.0.0.1', '127.0.0.1:7001'],
  [undefined, '::1', '[::1]:7001'],
  ['10.0.0.7', '0.0.0.0', '10.0.0.7:7001'],
  ['controller-0.sandboxes', '0.0.0.0', 'controller-0.sandboxes:7001'],
  ['[fd00::7]', '::', '[fd00::7]:7001'],
  ['fd00::7', '::', '[fd00::7]:7001'],
  ['10.0.0.7:9000', '0.0.0.0', '10.0.0.7:9000'],
  ['[fd00::7]:9000', '::', '[fd00::7]:9000'],
])('announces, with %s set and %s listened on, the address %s', (advertised, host, address) => {
  expect(advertisedAddress(advertised, host, 7001)).toBe(address);
});

describe('the settings', () => {
  it('name a missing setting that the driver needs', () => {
    const config = sandboxControllerConfig.parse({ ETUDE_SANDBOX_DRIVER: 'kubernetes', ETUDE_SANDBOX_NAMESPACE: 'boxes' });
    expect(needed(config, 'ETUDE_SANDBOX_NAMESPACE')).toBe('boxes');
    expect(() => needed(config, 'ETUDE_SANDBOX_TOKEN_SECRET')).toThrow(
      expect.objectContaining({ code: 'FAILED_PRECONDITION', message: expect.stringContaining('ETUDE_SANDBOX_TOKEN_SECRET') as string }),
    );
  });
});
