# 11: a server and a client in Python. The module calls the C API. Run it by: python3 11_python.py
#
# Prints:
#   greeting: b'hello'
#   without one: None
#   put if absent: ConflictError
#   visits: 42
#   all keys: [b'greeting', b'visits']
#   the server counted 2 puts, and its pool is volatile
import tempfile

import erda

with tempfile.TemporaryDirectory() as folder:
    with erda.Server("dram:", f"shm:{folder}/socket", size=64 << 20) as server:
        with erda.Client(server.addresses[0]) as client:
            client.put("greeting", "hello")
            print("greeting:", client.get("greeting"))
            print("without one:", client.get("nothing"))
            try:
                client.put_if("greeting", "hi", erda.ABSENT)
            except erda.ConflictError as error:
                print("put if absent:", type(error).__name__)
            print("visits:", client.incr("visits", 42))
            print("all keys:", sorted(found.key for found in client.scan()))
        print(f"the server counted {server.stats()['puts']} puts, and its pool is {server.durability}")
