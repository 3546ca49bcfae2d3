import { createHash, timingSafeEqual } from 'node:crypto';
import { EtudeError } from '@etude/contracts/errors';
import type { ServedCall } from '@etude/contracts/grpc-server';
import { TenantId } from '@etude/contracts/ids';

/** Whom a gateway calls for. */
export interface InternalCaller {
  readonly tenant: string;
  readonly signal: AbortSignal;
}

/** Metadata in which the gateway says whom it authenticated. */
const TENANT_METADATA = 'etude-tenant';

const digest = (text: string) => createHash('sha256').update(text).digest();

/**
 * Admits gateways: those that know the token. Compared in constant time.
 *
 * @throws EtudeError (the function it makes) UNAUTHENTICATED, TENANT_MISSING
 */
export function internalCallers(token: string): (call: ServedCall) => InternalCaller {
  const expected = digest(`Bearer ${token}`);
  return ({ metadata, signal }) => {
    const given = metadata.get('authorization');
    const [header] = given;
    const known = timingSafeEqual(digest(typeof header === 'string' ? header : ''), expected);
    if (!known || given.length !== 1)
      throw new EtudeError(
        'UNAUTHENTICATED',
        'This address is for gateways, which send ETUDE_SANDBOX_INTERNAL_TOKEN. Call the gateway, or give both the same token.',
      );
    const tenants = metadata.get(TENANT_METADATA);
    const tenant = TenantId.safeParse(tenants[0]);
    if (!tenant.success || tenants.length !== 1)
      throw new EtudeError('TENANT_MISSING', `a gateway must send the tenant that it authenticated as "${TENANT_METADATA}", once`);
    return { tenant: tenant.data, signal };
  };
}
