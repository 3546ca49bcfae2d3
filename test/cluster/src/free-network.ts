import { run } from './command.js';
import type { Network } from './place.js';

const toNumber = (ip: string) => ip.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);

/** First and last address of a subnet, or of a single address. */
function rangeOf(subnet: string): readonly [number, number] {
  const [ip = '', bits = '32'] = subnet.split('/');
  const size = 2 ** (32 - Number(bits));
  const first = Math.floor(toNumber(ip) / size) * size;
  return [first, first + size - 1];
}

const overlap = (a: string, b: string): boolean => {
  const [[firstA, lastA], [firstB, lastB]] = [rangeOf(a), rangeOf(b)];
  return firstA <= lastB && firstB <= lastA;
};

function networkOf(second: number): Network {
  const base = `10.${second}`;
  return {
    device: `etude-${second}`,
    hostIp: `${base}.255.1`,
    nodeIp: `${base}.255.2`,
    pods: `${base}.0.0/24`,
    services: `${base}.128.0/20`,
    apiServiceIp: `${base}.128.1`,
  };
}

/** The candidates of 10.100.0.0/16 to 10.199.0.0/16 that none of `taken` touches, in a random order: two that start at once differ. */
export function freeNetworks(taken: readonly string[]): Network[] {
  return Array.from({ length: 100 }, (_, index) => index + 100)
    .filter((second) => !taken.some((subnet) => overlap(subnet, `10.${second}.0.0/16`)))
    .map((second) => ({ second, at: Math.random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ second }) => networkOf(second));
}

/** Every subnet that the machine routes anywhere but to its default gateway. */
export async function routedSubnets(): Promise<string[]> {
  const routes = await run('ip', ['-4', 'route', 'show', 'table', 'all']);
  return [...routes.matchAll(/(?:^|\s)(\d+\.\d+\.\d+\.\d+(?:\/\d+)?)\s+dev/gm)].map(([, subnet = '']) => subnet);
}
