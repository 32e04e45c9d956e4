import { deepEqual, equal, match, rejects, throws } from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import {
  AuditRecordSchema,
  DecisionViewSchema,
  ExplainResponseSchema,
  GetCatalogResponseSchema,
  ModelViewSchema,
  NodeViewSchema,
} from "@heddle/proto/gen/admin";
import { confirm } from "./io.ts";
import { auditListing } from "./commands/audit.ts";
import { formatCatalog } from "./commands/catalog/show.ts";
import { decisionListing } from "./commands/decisions.ts";
import { formatExplanation } from "./commands/explain.ts";
import { decided } from "./commands/models/decide.ts";
import { modelListing } from "./commands/models/list.ts";
import { formatLabels, parseLabels } from "./commands/nodes/label.ts";
import { type Listing, writeListing } from "./table.ts";

function tableOf<Row>(listing: Listing<Row>): string {
  let text = "";
  const out = (more: string) => void (text += more);
  writeListing({ terminal: true, color: false, out, err: () => {} }, listing, "table");
  return text;
}

Deno.test("parseLabels() reads key=value and key-, and nothing else", () => {
  deepEqual(parseLabels(["rack=r1", "zone=", "a=b=c-", "old-"]), {
    set: { rack: "r1", zone: "", a: "b=c-" },
    remove: ["old"],
  });
  for (const word of ["rack", "=r1", "-", ""]) throws(() => parseLabels([word]), /want key=value/);
});

Deno.test("formatLabels() marks what an operator put there", () => {
  const node = create(NodeViewSchema, {
    inventory: { labels: { rack: "r2", gpu: "a" } },
    operatorLabels: { rack: "r2" },
  });
  equal(formatLabels(node), "gpu=a, rack=r2*");
  equal(formatLabels(undefined), "");
});

Deno.test("confirm() goes on for --yes or a yes, and not where nobody can be asked", async () => {
  const asked: string[] = [];
  const answer = (yes: boolean) => (question: string) => {
    asked.push(question);
    return Promise.resolve(yes);
  };
  await confirm({ ask: undefined }, { yes: true }, "Stop it?");
  await confirm({ ask: answer(true) }, { yes: false }, "Stop it?");
  await rejects(confirm({ ask: answer(false) }, { yes: false }, "Stop it?"), /not confirmed/);
  await rejects(
    confirm({ ask: undefined }, { yes: false }, "Stop it?"),
    /Not done: Stop it\? .*--yes$/,
  );
  deepEqual(asked, ["Stop it?", "Stop it?"]);
});

Deno.test("decisions and audit say who decided what, and when", () => {
  const decisions = [
    create(DecisionViewSchema, {
      kind: "scale",
      subject: "gone",
      value: "3",
      by: "ann",
      reason: "launch",
      decidedMs: 65_000n,
      orphaned: true,
    }),
    create(DecisionViewSchema, { kind: "labels", subject: "n1", value: "rack=b" }),
  ];
  equal(
    tableOf(decisionListing(decisions)),
    "DECISION  ABOUT             VALUE   BY   FOR   REASON\n" +
      "scale     gone (not there)  3       ann  1m5s  launch\n" +
      "labels    n1                rack=b  -    -     -\n",
  );
  const record = create(AuditRecordSchema, {
    atMs: 1_800_000_000_500n,
    by: "ann",
    action: "clear_scale",
    subject: "m",
  });
  equal(
    tableOf(auditListing([record])),
    "WHEN                  BY   DECISION     ABOUT  REASON\n" +
      "2027-01-15 08:00:00Z  ann  clear scale  m      -\n",
  );
});

Deno.test("models and explain show what operators and demand have set", () => {
  const model = create(ModelViewSchema, {
    name: "m",
    minReplicas: 1,
    maxReplicas: 4,
    desiredReplicas: 2,
    readyReplicas: 1,
    heldReplicas: 2,
    paused: true,
  });
  match(tableOf(modelListing([model])), /1–4 held at 2 paused/);
  equal(decided(model, "x"), "m is paused, held at 2, 1/2 ready");
  equal(decided(undefined, "x"), "x is not in the catalog");
  const explanation = create(ExplainResponseSchema, {
    model: "m",
    summary: "1 placed",
    desiredReplicas: 3,
    scaleReason: "96 requests or more for 30s, 32 for each replica",
  });
  match(formatExplanation(explanation), /^Wanted: 3, 96 requests or more for 30s/m);
});

Deno.test("catalog says what is acted on, and what is wrong with the file", () => {
  const answer = create(GetCatalogResponseSchema, {
    revision: 3n,
    models: 1,
    file: "/etc/heddle/catalog.yaml",
    fileState: "applied",
  });
  equal(
    formatCatalog(answer),
    "Revision 3 is acted on: 1 model\nFile /etc/heddle/catalog.yaml is applied\n",
  );
  const fileDetail = "/etc/heddle/catalog.yaml:6:9: models[0].profils: unknown key\n";
  match(
    formatCatalog(
      create(GetCatalogResponseSchema, { file: "f", fileState: "invalid", fileDetail }),
    ),
    /^No catalog was ever applied\nFile f is invalid:\n\S+:6:9: models\[0\]\.profils: unknown key\n$/,
  );
});
