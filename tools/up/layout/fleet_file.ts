/** The file behind `up --fleet`: nodes with described hardware. */
import { z } from "zod";
import { IDENTITY_NAME } from "@heddle/common/identity";

const gpusSchema = z.strictObject({
  name: z.string().min(1).describe("as nvidia-smi prints it"),
  count: z.number().int().min(1).max(16).describe("how many of them the node has"),
  memory_mib: z.number().int().positive().describe("memory of each in MiB, as nvidia-smi says"),
  compute_capability: z.string().regex(/^\d+\.\d+$/, 'want a version such as "9.0", in quotes')
    .describe('compute capability, such as "9.0"'),
});

const hcasSchema = z.strictObject({
  count: z.number().int().min(1).max(16).describe("named mlx5_0, mlx5_1, …"),
  link_layer: z.enum(["InfiniBand", "Ethernet"]).default("InfiniBand")
    .describe("as sysfs prints it"),
  rate: z.string().default("400 Gb/sec (4X NDR)").describe("as sysfs prints it"),
});

const nodeSchema = z.strictObject({
  name: z.string().regex(IDENTITY_NAME, "want letters, digits, dots and dashes")
    .describe("name of the node"),
  gpus: gpusSchema.optional().describe("its GPUs; none: left out"),
  nvlink: z.enum(["all", "pairs", "none"]).default("all")
    .describe("which of its GPUs NVLink connects"),
  hcas: hcasSchema.optional().describe("its RDMA adapters; none: left out"),
  fabric: z.string().optional().describe("the fabric its HCAs are declared to be on"),
  labels: z.record(z.string(), z.string()).default({})
    .describe("what operators want to know of this node"),
});
export type FleetNode = z.output<typeof nodeSchema>;

export const fleetSchema = z.strictObject({
  catalog: z.string().optional().describe("catalog to load, relative to this file"),
  nodes: z.array(nodeSchema).min(1).max(16).describe("the nodes, an agent each"),
}).superRefine((fleet, context) => {
  fleet.nodes.forEach((node, index) => {
    if (fleet.nodes.findIndex((other) => other.name === node.name) < index) {
      context.addIssue({
        code: "custom",
        path: ["nodes", index, "name"],
        message: `"${node.name}" is there twice`,
      });
    }
    if (node.fabric !== undefined && node.hcas === undefined) {
      context.addIssue({
        code: "custom",
        path: ["nodes", index, "fabric"],
        message: "a fabric needs hcas",
      });
    }
  });
});
