/** A fabric as the node's configuration declares it. */
export interface DeclaredFabric {
  readonly name: string;
  /** Adapters, as `mlx5_0` (every port) or `mlx5_0:1` (one port). */
  readonly hcas: readonly string[];
  /** Absent: any, but all ports alike. */
  readonly linkLayer?: "infiniband" | "ethernet";
  /** What each port should run at; absent: no expectation. */
  readonly rateGbps?: number;
}
