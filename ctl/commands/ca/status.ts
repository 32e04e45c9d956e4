/** `ctl ca status`: the authorities of a cluster, and the newest certificate of every holder. */
import { join } from "node:path";
import { buildCommand } from "@stricli/core";
import { type CertificateFacts, readCertificate } from "@heddle/common/pki";
import {
  type CtlContext,
  LIST_ALIASES,
  outputOf,
  WATCH_FLAGS,
  type WatchFlags,
} from "../../command.ts";
import { type Listing, writeListing } from "../../table.ts";
import { show } from "../../watch.ts";
import {
  type Authority,
  DAY_MS,
  findAuthority,
  hasRootKey,
  type Issued,
  openAuthority,
  readIssued,
} from "./authority.ts";

/** One certificate of the list. */
interface CertificateRow {
  readonly role: string;
  readonly name: string;
  readonly serial: string;
  /** Serial of the signer. */
  readonly issuer: string;
  /** ms since 1970 */
  readonly notAfter: number;
}

export const status = buildCommand({
  docs: { brief: "List the authorities and the newest certificate of every holder" },
  parameters: {
    flags: WATCH_FLAGS,
    aliases: LIST_ALIASES,
  },
  async func(this: CtlContext, flags: WatchFlags) {
    const folder = this.folders.authority;
    await show(this, flags, async () => {
      const listing = certificateListing(await rowsOf(folder), Date.now());
      const loose = await hasRootKey(folder);
      return (io) => {
        writeListing(io, listing, outputOf(flags));
        if (io.terminal && loose) {
          io.out(`\nroot-key.pem lies in ${folder}: put it away, off this machine\n`);
        }
      };
    });
  },
});

async function rowsOf(folder: string): Promise<readonly CertificateRow[]> {
  const next = await findAuthority(join(folder, "next"));
  return [
    ...authorityRows(await openAuthority(folder), ""),
    // While one authority takes the place of another, there are two.
    ...(next === undefined ? [] : authorityRows(next, "next ")),
    ...newestOfEach(await readIssued(folder)),
  ];
}

function authorityRows(
  { rootPem, issuing, fleet, cluster }: Authority,
  which: "" | "next ",
): readonly CertificateRow[] {
  const root = readCertificate(rootPem);
  const row = (role: string, own: CertificateFacts) =>
    authorityRow(`${which}${role}`, cluster, own, root);
  return [
    row("root", root),
    row("issuing", readCertificate(issuing.certificatePem)),
    ...(fleet === undefined ? [] : [row("fleet", readCertificate(fleet.certificatePem))]),
  ];
}

function authorityRow(
  role: string,
  name: string,
  own: CertificateFacts,
  issuer: CertificateFacts,
): CertificateRow {
  return { role, name, serial: own.serial, issuer: issuer.serial, notAfter: own.notAfter };
}

/** The certificate given out last to each holder, the one that ends first on top. */
function newestOfEach(issued: readonly Issued[]): readonly CertificateRow[] {
  const newest = new Map(issued.map((each) => [`${each.role}/${each.name}`, each]));
  return [...newest.values()].sort((a, b) =>
    a.notAfter - b.notAfter || (`${a.role}/${a.name}` < `${b.role}/${b.name}` ? -1 : 1)
  );
}

function certificateListing(
  rows: readonly CertificateRow[],
  now: number,
): Listing<CertificateRow> {
  const daysLeft = (row: CertificateRow) => Math.floor((row.notAfter - now) / DAY_MS);
  return {
    rows,
    columns: [
      { title: "ROLE", cell: (row) => row.role },
      { title: "NAME", cell: (row) => row.name },
      { title: "EXPIRES", cell: (row) => new Date(row.notAfter).toISOString().slice(0, 10) },
      {
        title: "LEFT",
        cell: (row) => row.notAfter <= now ? "expired" : `${daysLeft(row)}d`,
      },
      { title: "SERIAL", cell: (row) => row.serial, wide: true },
      { title: "ISSUER", cell: (row) => row.issuer, wide: true },
    ],
    record: (row) => ({
      role: row.role,
      name: row.name,
      serial: row.serial,
      issuer: row.issuer,
      not_after: new Date(row.notAfter).toISOString(),
      days_left: daysLeft(row),
    }),
    fields: ["role", "name", "serial", "issuer", "not_after", "days_left"],
    empty:
      "No certificate was given out yet. Give one with: heddle ca issue --role ROLE --name NAME",
  };
}
