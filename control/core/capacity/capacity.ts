/**
 * How many requests a second a model carries within its promise: replicas times what one of them was
 * measured to carry. What nobody measured counts as nothing, and is said. All arithmetic about
 * capacity is here; pure.
 */
import type { StoredMeasurement } from "./measurement.ts";
import type { Group } from "./running.ts";
import { hardwareClass } from "./running.ts";

/** Shares closer than this are not worth a word. */
const SHARE_APART = 0.1;

/** Largest weight that is proposed: two digits tell replicas apart well enough. */
const WEIGHT_TOP = 100;

/** Everything that the sum is made of. */
export interface Counted {
  readonly shape: string;
  /** Of one promise or another, newest first. */
  readonly measurements: readonly StoredMeasurement[];
  /** What is ready. */
  readonly ready: readonly Group[];
  /** What would run if everything ran that fits and may. */
  readonly most: readonly Group[];
}

export interface ProfileSum {
  readonly group: Group;
  readonly readyReplicas: number;
  readonly mostReplicas: number;
  /** Undefined: never measured as it is now. */
  readonly measured: StoredMeasurement | undefined;
  /** 0 while any profile of the catalog was not measured. */
  readonly measuredWeight: number;
  readonly notes: readonly string[];
}

export interface CapacitySum {
  readonly profiles: readonly ProfileSum[];
  readonly nowPerSecond: number;
  readonly mostPerSecond: number;
  readonly unmeasuredReplicas: number;
}

export function sumCapacity(counted: Counted): CapacitySum {
  const { ready, most } = counted;
  const prints = new Set([...ready, ...most].map((group) => group.fingerprint));
  const rows = [...prints].flatMap((print) => {
    const now = ready.find((group) => group.fingerprint === print);
    const then = most.find((group) => group.fingerprint === print);
    const group = now ?? then;
    if (group === undefined) return [];
    const [readyReplicas, mostReplicas] = [now?.count ?? 0, then?.count ?? 0];
    const versions = readyReplicas > 0 ? now?.engineVersions : then?.engineVersions;
    return [{
      group,
      readyReplicas,
      mostReplicas,
      ...findMeasured(counted, group, versions ?? []),
    }];
  });
  const weights = measuredWeights(rows);
  const shares = sharesByWeight(rows);
  const total = (count: (row: Row) => number) =>
    rows.reduce((sum, row) => sum + count(row) * rate(row.measured), 0);
  return {
    profiles: rows.map((row, index) => ({
      ...row,
      measuredWeight: weights[index] ?? 0,
      notes: [...row.notes, ...shares[index] ?? []],
    })),
    nowPerSecond: total((row) => row.readyReplicas),
    mostPerSecond: total((row) => row.mostReplicas),
    unmeasuredReplicas: rows.filter(({ measured }) => measured === undefined)
      .reduce((sum, { mostReplicas }) => sum + mostReplicas, 0),
  };
}

/** Requests a second that so many replicas of these configurations carry. */
export function carried(groups: readonly Group[], counted: Counted): number {
  return groups.reduce(
    (sum, group) =>
      sum + group.count * rate(findMeasured(counted, group, group.engineVersions).measured),
    0,
  );
}

type Row = Pick<ProfileSum, "group" | "readyReplicas" | "mostReplicas" | "measured" | "notes">;

function rate(measured: StoredMeasurement | undefined): number {
  return measured?.requestsPerSecond ?? 0;
}

/** The newest of the same engine configuration; of the same engine version, if there is one. */
function findMeasured(
  { measurements, shape }: Pick<Counted, "measurements" | "shape">,
  group: Group,
  versions: readonly string[],
): Pick<ProfileSum, "measured" | "notes"> {
  const same = measurements.filter((each) =>
    each.fingerprint === group.fingerprint && each.shape === shape &&
    (group.profile === undefined || each.hardwareClass === hardwareClass(group.profile))
  );
  const exact = same.find(({ engineVersion }) => versions.includes(engineVersion));
  const measured = exact ?? same[0];
  const gone = group.profile === undefined ? ["the catalog has it no more"] : [];
  if (measured === undefined) {
    return { measured, notes: [...gone, ...elsewhere(measurements, group)] };
  }
  const [version] = versions;
  const older = version !== undefined && exact === undefined
    ? [
      `measured with ${measured.engine} ${measured.engineVersion}, it runs ${version || "another"}`,
    ]
    : [];
  const unstable = measured.unstable
    ? [
      `not stable: repeated measurements were ${
        percent(measured.spread)
      } apart; measure it again ` +
      `while nothing else sends there: heddle bench ${measured.model} --profile ${measured.profile} ` +
      `--shape ${shape}`,
    ]
    : [];
  return { measured, notes: [...gone, ...older, ...unstable] };
}

/** Why there is no measurement although the profile was measured. */
function elsewhere(measurements: readonly StoredMeasurement[], group: Group): readonly string[] {
  const others = measurements.filter((each) => each.fingerprint === group.fingerprint);
  const shapes = [...new Set(others.map(({ shape }) => shape))].sort();
  return shapes.length === 0 ? [] : [`measured for ${shapes.join(", ")} only`];
}

/** In proportion to what replicas carry; of one profile, or while one is unknown, there is none. */
function measuredWeights(rows: readonly Row[]): readonly number[] {
  const own = rows.filter(({ group }) => group.profile !== undefined);
  const top = Math.max(...own.map(({ measured }) => rate(measured)));
  const known = own.length > 1 && own.every(({ measured }) => rate(measured) > 0);
  return rows.map(({ group, measured }) =>
    known && group.profile !== undefined
      ? Math.max(1, Math.round(WEIGHT_TOP * rate(measured) / top))
      : 0
  );
}

/** Routers fill replicas by weight: a share that is not what a profile carries breaks its promise first. */
function sharesByWeight(rows: readonly Row[]): readonly (readonly string[])[] {
  const weight = ({ group, readyReplicas }: Row) => readyReplicas * (group.profile?.weight ?? 0);
  const capacity = ({ readyReplicas, measured }: Row) => readyReplicas * rate(measured);
  const sum = (of: (row: Row) => number) => rows.reduce((total, row) => total + of(row), 0);
  const [weights, capacities] = [sum(weight), sum(capacity)];
  const priorities = new Set(
    rows.filter((row) => row.readyReplicas > 0).map(({ group }) => group.profile?.priority),
  );
  if (weights === 0 || capacities === 0 || priorities.size > 1) return rows.map(() => []);
  return rows.map((row) => {
    const [gets, carries] = [weight(row) / weights, capacity(row) / capacities];
    return row.measured !== undefined && gets - carries > SHARE_APART
      ? [`its weight brings it ${percent(gets)} of requests, it carries ${percent(carries)}`]
      : [];
  });
}

function percent(part: number): string {
  return `${Math.round(100 * part)} %`;
}
