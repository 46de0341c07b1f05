"""Sets a tenant's own program again, as a new one, until standard input ends. Prints the number of
times. Arguments: address and device ID, seconds between two programs."""

import select
import sys

import grpc
import p4runtime_sh.shell as sh
from p4.v1 import p4runtime_pb2 as p4rt

address, device, pause = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
sh.setup(device_id=device, grpc_addr=address, election_id=(0, 100), verbose=False)
request = p4rt.GetForwardingPipelineConfigRequest(device_id=device)
config = sh.client.stub.GetForwardingPipelineConfig(request).config
request = p4rt.SetForwardingPipelineConfigRequest(device_id=device)
request.action = request.VERIFY_AND_COMMIT
request.election_id.low = 100
request.config.CopyFrom(config)
count = 0
while not select.select([sys.stdin], [], [], pause)[0]:
    try:
        sh.client.stub.SetForwardingPipelineConfig(request)
        count += 1
    except grpc.RpcError as why:
        # The new program's process has been killed.
        if why.code() != grpc.StatusCode.UNAVAILABLE:
            raise
sh.teardown()
print(count)
