/** The most executions of one tenant that one process has in the first line at once. */
export const FIRST_LINE_MAX = 4;

/** The place of one execution. `moveUp` is called at most once, when it moves from the second line into the first. */
export interface PlaceInLine {
  readonly tenant: string;
  readonly moveUp: () => void;
  isFirst: boolean;
}

/**
 * Two lines of executions, so that tenants take turns. Each tenant has at most FIRST_LINE_MAX executions in the first line and the rest
 * in the second. The second is served while nobody waits in the first. When an execution ends, its tenant's oldest one in the second
 * line moves up. So an execution waits at most for a few of each other tenant, and a tenant with many still makes progress.
 *
 * Each process counts only its own executions.
 */
export class ExecutionLines {
  readonly #places = new Map<string, readonly PlaceInLine[]>();

  enter(tenant: string, moveUp: () => void): PlaceInLine {
    const places = this.#places.get(tenant) ?? [];
    const place = { tenant, moveUp, isFirst: places.length < FIRST_LINE_MAX };
    this.#places.set(tenant, [...places, place]);
    return place;
  }

  /** Call it once, when nobody waits for the execution any more. */
  leave(place: PlaceInLine): void {
    const left = (this.#places.get(place.tenant) ?? []).filter((one) => one !== place);
    if (left.length === 0) this.#places.delete(place.tenant);
    else this.#places.set(place.tenant, left);
    const next = left[FIRST_LINE_MAX - 1];
    if (next === undefined || next.isFirst) return;
    next.isFirst = true;
    next.moveUp();
  }
}
