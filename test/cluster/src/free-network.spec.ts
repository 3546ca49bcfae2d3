import { describe, expect, it } from 'vitest';
import { freeNetworks } from './free-network.js';

describe('freeNetworks', () => {
  it('leaves out what any route touches', () => {
    const devices = freeNetworks(['10.100.7.0/24', '10.101.0.9', '10.102.0.0/15', '192.168.0.0/16']).map(({ device }) => device);
    expect(devices).toHaveLength(96);
    expect(devices).toContain('etude-104');
    for (const taken of ['etude-100', 'etude-101', 'etude-102', 'etude-103']) expect(devices).not.toContain(taken);
  });

  it('finds none where everything is routed', () => {
    expect(freeNetworks(['10.0.0.0/8'])).toEqual([]);
  });
});
