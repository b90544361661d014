"""The test kit: traces drawn, built, simulated with a planted cause, or made at random, and their writer.

========================  =============================================================================
``drawing.draw``          a trace drawn as text -> neutral events; ``drawing.render`` goes back
``builder.TraceDrawing``  the same call by call
``planted.CASES``         simulated profiles with a cause of known size and the accounting they must get
``random_traces``         a hypothesis strategy of small, also weird, traces
``kineto_writer``         neutral events -> the bytes of a Kineto profile of any generation and layout
``traces``                where the real traces are
========================  =============================================================================
"""
