import { controllerFull, tenantFull } from './session-errors.js';

export interface RoomLimits {
  /** Sessions in this controller. */
  readonly sessionsMax: number;
  /** Open sessions of one tenant, over all controllers. */
  readonly tenantSessionsMax: number;
}

/** Sessions that are there already. */
interface Taken {
  /** In this controller. */
  readonly held: number;
  /** Of the tenant, over all controllers. */
  readonly open: number;
}

/** Sessions that are being opened, which take room before there is a record of them. */
export class SessionRoom {
  readonly #byTenant = new Map<string, number>();

  get count(): number {
    return [...this.#byTenant.values()].reduce((sum, count) => sum + count, 0);
  }

  /**
   * Looks and takes in one go, so that of many calls at once no more are let in than there is room for.
   *
   * Answers what gives the place back, to be called once. @throws EtudeError SANDBOX_CAPACITY
   */
  enter(tenant: string, { held, open }: Taken, { sessionsMax, tenantSessionsMax }: RoomLimits): () => void {
    if (held + this.count >= sessionsMax) throw controllerFull(sessionsMax);
    if (open + this.#of(tenant) >= tenantSessionsMax) throw tenantFull(tenant, tenantSessionsMax);
    this.#byTenant.set(tenant, this.#of(tenant) + 1);
    return () => {
      const left = this.#of(tenant) - 1;
      if (left > 0) this.#byTenant.set(tenant, left);
      else this.#byTenant.delete(tenant);
    };
  }

  #of(tenant: string): number {
    return this.#byTenant.get(tenant) ?? 0;
  }
}
