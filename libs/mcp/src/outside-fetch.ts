import { lookup as resolveHost } from 'node:dns';
import { type IncomingMessage, request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { Readable } from 'node:stream';
import type { FetchLike } from '@modelcontextprotocol/client';

const RESPONSE_MAX_BYTES = 16 * 1024 * 1024;
const NO_BODY = [204, 205];

/** Addresses that aren't public: those of RFC 6890, multicast, and IPv6 addresses that contain an IPv4 address. */
const NOT_PUBLIC = new BlockList();
const SUBNETS = {
  ipv4: ['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24'],
  more: ['192.168.0.0/16', '198.18.0.0/15', '224.0.0.0/3'],
  ipv6: ['::/96', '64:ff9b::/32', '2001::/32', '2002::/16', 'fc00::/7', 'fe80::/10', 'fec0::/10', 'ff00::/8'],
};
for (const [family, subnets] of Object.entries(SUBNETS))
  for (const [net = '', bits] of subnets.map((subnet) => subnet.split('/')))
    NOT_PUBLIC.addSubnet(net, Number(bits), family === 'ipv6' ? 'ipv6' : 'ipv4');

export const isPublic = (address: string): boolean => !NOT_PUBLIC.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');

class PrivateAddress extends Error {
  constructor(host: string) {
    super(`${host} has a loopback or private address, which the operator does not allow (ETUDE_MCP_PRIVATE_ADDRESSES)`);
  }
}

/** Resolves and checks in one step. The connection uses the checked addresses, because a second DNS query could return other addresses. */
const publicLookup: LookupFunction = (host, options, done) =>
  resolveHost(host, { ...options, all: true }, (error, found) => {
    const [first] = found ?? [];
    if (error || !first) return done(error ?? new Error(`${host} has no address`), '');
    if (!found.every(({ address }) => isPublic(address))) return done(new PrivateAddress(host), '');
    return options.all ? done(null, found) : done(null, first.address, first.family);
  });

/** Fetches without following redirects or keeping connections. Refuses addresses that aren't public, unless `privateAddresses`. */
export function outsideFetch(privateAddresses: boolean): FetchLike {
  return (target, init = {}) => {
    const url = new URL(target);
    const host = url.hostname.replaceAll(/^\[|\]$/g, '');
    const { promise, resolve, reject } = Promise.withResolvers<Response>();
    if (!privateAddresses && isIP(host) !== 0 && !isPublic(host)) return Promise.reject(new PrivateAddress(host));
    const { method = 'GET', signal } = init;
    const request = (url.protocol === 'https:' ? httpsRequest : httpRequest)(
      url,
      {
        method,
        headers: Object.fromEntries(new Headers(init.headers)),
        agent: false,
        ...(signal ? { signal } : {}),
        ...(privateAddresses ? {} : { lookup: publicLookup }),
      },
      (answer) => {
        const { statusCode = 500 } = answer;
        if (statusCode < 300 || statusCode >= 400) return resolve(responseOf(answer));
        answer.destroy();
        reject(new Error(`the server answered with a redirect (${statusCode}), which is not followed`));
      },
    );
    request.on('error', reject);
    request.end(init.body as string | undefined);
    return promise;
  };
}

function responseOf(answer: IncomingMessage): Response {
  const headers = Object.entries(answer.headersDistinct).flatMap(([name, values = []]) =>
    values.map((value) => [name, value] as [string, string]),
  );
  const status = answer.statusCode ?? 500;
  if (NO_BODY.includes(status)) answer.resume();
  const body = NO_BODY.includes(status) ? null : (Readable.toWeb(Readable.from(limited(answer))) as ReadableStream);
  return new Response(body, { status, headers });
}

async function* limited(answer: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const chunk of answer) {
    bytes += chunk.byteLength;
    if (bytes > RESPONSE_MAX_BYTES) throw new Error(`the answer is larger than ${RESPONSE_MAX_BYTES} bytes`);
    yield chunk;
  }
}
